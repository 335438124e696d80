//! Accesses to images of every dimension and of some formats, as text.

use crate::exec::{Environment, Inputs, Sizes};
use crate::image::{Format, ImageDesc, Texel, put_texel, texel_words};
use crate::interp::{Options, Outcome, Stop, UndefinedUse, run};
use crate::module::Module;
use crate::text;
use crate::verify::verify;

/// A module with these resources, whose one block is `body`; `%0` and up are constants 0 to 7 of i32.
fn module(resources: &str, body: &str) -> Module {
    let mut t = String::from("module \"main\" compute\nworkgroup 4 1 1\n");
    t.push_str(resources);
    t.push_str("func\nb0:\n");
    for k in 0..8 {
        t.push_str(&format!("  %{k}:i32 = const.i32 <{k}>\n"));
    }
    t.push_str("  %8:i32 = builtin.i32 <local_invocation_index>\n");
    t.push_str(body);
    t.push_str("  return\n");
    let m = text::parse(&t).unwrap_or_else(|e| panic!("{e}\n{t}"));
    verify(&m).unwrap_or_else(|e| panic!("{}\n{t}", e[0]));
    // What is printed is read back.
    assert_eq!(text::print(&text::parse(&text::print(&m)).unwrap()), text::print(&m));
    m
}

fn resource(id: u32, facts: &str) -> String {
    format!("resource @{id} {facts} \"r{id}\"\n")
}

/// Size and first texels of image 0 are given; runs and gives the bytes of all images.
fn outcome(m: &Module, inputs: &Inputs) -> Result<(Environment, Outcome), Stop> {
    let env = Environment::new(m, inputs, Sizes::source()).unwrap();
    let o = run(m, &env, &Options::source())?;
    Ok((env, o))
}

fn desc(m: &Module, res: u32, size: &[u32]) -> ImageDesc {
    let info = m.resources[crate::Res(res)].image.unwrap();
    ImageDesc::new(&info, info.storage_format(), size)
}

fn texels(format: Format, list: &[Texel]) -> Vec<u8> {
    let n = format.bytes() as usize;
    let mut out = vec![0; list.len() * n];
    for (to, t) in out.chunks_mut(n).zip(list) {
        put_texel(to, &format.encode(*t));
    }
    out
}

/// Every dimension: lane k writes its texel, and only that changes.
#[test]
fn every_dimension() {
    for (facts, coordinates, size, at) in [
        ("1d", "%8", &[6][..], [0usize, 1, 2, 3]),
        ("1d array", "%8, %1", &[6, 2], [6, 7, 8, 9]),
        ("2d", "%8, %2", &[5, 3], [10, 11, 12, 13]),
        ("2d array", "%8, %2, %1", &[4, 3, 2], [20, 21, 22, 23]),
        ("3d", "%8, %2, %1", &[4, 3, 2], [20, 21, 22, 23]),
        ("cube", "%8, %1, %5", &[4, 4], [84, 85, 86, 87]),
        ("cube array", "%8, %1, %7", &[4, 4, 2], [116, 117, 118, 119]),
        ("buffer", "%8", &[9], [0, 1, 2, 3]),
    ] {
        let r = format!("image set 0 binding 0 elements 1 size 0 stride 0 uint {facts} format r8ui");
        let body = format!("  image_store.i32 <@0 color> {coordinates}, %8, %7, %7, %7\n");
        let m = module(&resource(0, &r), &body);
        let d = desc(&m, 0, size);
        let before = vec![9; d.bytes() as usize];
        let (env, o) = outcome(&m, &Inputs::new([1, 1, 1]).image(0, 0, d, before.clone())).unwrap();
        let mut want = before;
        for (k, &at) in at.iter().enumerate() {
            want[at] = k as u8;
        }
        assert_eq!(env.image_contents(&o.memory), [&want[..]], "{facts}");
        // One less along any axis, and a store disappears or a load stops the run.
        let load =
            module(&resource(0, &r), &format!("  %9:i32 = image_load.i32 <@0 color mask 1> {coordinates}\n"));
        assert!(outcome(&load, &Inputs::new([1, 1, 1]).image(0, 0, d, want.clone())).is_ok());
        for axis in 0..size.len() {
            let mut less = size.to_vec();
            less[axis] = if axis == 0 {
                3
            } else if facts.starts_with("cube") && axis == 1 {
                1
            } else {
                less[axis] - 1
            };
            if less[axis] == 0 {
                continue;
            }
            let d = desc(&load, 0, &less);
            let inputs = Inputs::new([1, 1, 1]).image(0, 0, d, Vec::new());
            let e = outcome(&load, &inputs).unwrap_err();
            assert!(matches!(&e, Stop::Texel { .. }), "{facts} {axis}: {e}");
            let (env, o) = outcome(&m, &inputs).unwrap();
            let changed = env.image_contents(&o.memory)[0].iter().filter(|&&b| b != 0).count();
            assert!(changed < 4, "{facts} {axis}");
        }
    }
}

/// A colour goes through the format on its way from one image to another.
#[test]
fn every_format() {
    let mut rng = crate::inputs::Random(3);
    for &f in Format::ALL {
        let (name, ty) = match f.component() {
            crate::image::Component::F32 => ("float", "f32"),
            crate::image::Component::I32 => ("int", "i32"),
            crate::image::Component::U32 => ("uint", "i32"),
        };
        let from = format!("texture set 0 binding 0 elements 1 size 0 stride 0 {name} 2d");
        let to = format!("image set 0 binding 1 elements 1 size 0 stride 0 {name} 2d format {}", f.name());
        let body = format!(
            "  %9:{ty}, %10:{ty}, %11:{ty}, %12:{ty} = image_load.{ty} <@0 color mask 15> %8, %0\n\
             \x20 image_store.{ty} <@1 color> %8, %0, %9, %10, %11, %12\n"
        );
        let m = module(&(resource(0, &from) + &resource(1, &to)), &body);
        let colors: Vec<Texel> = (0..4)
            .map(|_| {
                [(); 4].map(|()| match f.component() {
                    crate::image::Component::F32 => rng.float().to_bits(),
                    _ => rng.bits() as u32 >> rng.below(32),
                })
            })
            .collect();
        let wide = Format::default_of(f.component());
        let a = ImageDesc::new(&m.resources[crate::Res(0)].image.unwrap(), wide, &[4, 1]);
        let b = desc(&m, 1, &[4, 1]);
        let inputs = Inputs::new([1, 1, 1]).image(0, 0, a, texels(wide, &colors)).image(0, 1, b, Vec::new());
        let (env, o) = outcome(&m, &inputs).unwrap();
        assert_eq!(env.image_contents(&o.memory)[1], &texels(f, &colors)[..], "{}", f.name());
        assert_eq!(o.undefined, []);
    }
}

#[test]
fn atomics_and_sizes() {
    let r = resource(0, "image set 0 binding 0 elements 1 size 0 stride 0 uint 2d array format r32ui")
        + &resource(1, "image set 0 binding 1 elements 2 size 0 stride 0 int 1d format r32i")
        + &resource(2, "texture set 0 binding 2 elements 1 size 0 stride 0 float cube array");
    let m = module(
        &r,
        "  %9:i32 = image_atomic.i32 <@0 add> %1, %0, %1, %8
  %10:i32 = image_atomic.i32 <@0 umax> %0, %0, %0, %8
  %11:i32 = image_atomic.i32 <@0 compare_exchange> %2, %0, %0, %5, %8
  image_store.i32 <@1 color element> %1, %8, %9, %0, %0, %0
  %12:i32, %13:i32, %14:i32 = image_size.i32 <@0 color>
  %15:i32, %16:i32, %17:i32 = image_size.i32 <@2 color lod> %1
  %18:i32 = image_levels.i32 <@2 color>
  image_store.i32 <@1 color element> %0, %0, %12, %0, %0, %0
  image_store.i32 <@1 color element> %0, %1, %14, %0, %0, %0
  image_store.i32 <@1 color element> %0, %2, %15, %0, %0, %0
  image_store.i32 <@1 color element> %0, %3, %17, %0, %0, %0
  image_store.i32 <@1 color element> %0, %4, %18, %0, %0, %0
",
    );
    let (a, b) = (desc(&m, 0, &[3, 1, 2]), desc(&m, 1, &[5]));
    let mut c = desc(&m, 2, &[8, 8, 3]);
    c.levels = 2;
    let mut inputs = Inputs::new([1, 1, 1])
        .image(0, 0, a, texels(Format::R32ui, &[[2, 0, 0, 0], [0; 4], [5, 0, 0, 0]]))
        .image(0, 1, b, Vec::new())
        .image(0, 1, b, Vec::new())
        .image(0, 2, c, Vec::new());
    inputs.images[2].element = 1;
    let (env, o) = outcome(&m, &inputs).unwrap();
    let words = |n: usize| -> Vec<u32> {
        env.image_contents(&o.memory)[n].chunks(4).map(|b| texel_words(b)[0]).collect()
    };
    assert_eq!(words(0), [3, 0, 0, 0, 6, 0]);
    assert_eq!(words(1), [3, 2, 4, 3, 2]);
    assert_eq!(words(2), [0, 0, 1, 3, 0]);
    // The driver says the same.
    let size =
        |res: u32, axis| env.word(crate::UniformWord::ImageSize { res: crate::Res(res), element: 0, axis });
    assert_eq!((size(0, crate::image::Axis::Layers), size(2, crate::image::Axis::Layers)), (2, 3));
    let state = |element| env.word(crate::UniformWord::TextureState { res: crate::Res(1), element });
    assert!(state(0).is_multiple_of(16) && state(1) == state(0) + 16);
    assert!(env.memory.read(state(1), 1).is_err());
}

#[test]
fn lowered_forms() {
    let r = resource(0, "image set 0 binding 0 elements 1 size 0 stride 0 float 1d format rgba16f")
        + &resource(1, "image set 0 binding 1 elements 1 size 0 stride 0 float 1d format rgba16f");
    let m = module(
        &r,
        "  %9:i32 = image_load.i32 <@0 halves mask 2> %8
  image_store.i32 <@1 words> %8, %9, %8\n",
    );
    let d = desc(&m, 0, &[4]);
    let from = [1.0, 2.0, 3.0, 4.0].map(|x: f32| [0, 0, x.to_bits(), (-x).to_bits()]);
    let inputs =
        Inputs::new([1, 1, 1]).image(0, 0, d, texels(Format::Rgba16f, &from)).image(0, 1, d, Vec::new());
    let (env, o) = outcome(&m, &inputs).unwrap();
    let bytes = env.image_contents(&o.memory)[1];
    assert_eq!(texel_words(&bytes[8..16]), [0xc000_4000, 1, 0, 0]);
}

#[test]
fn what_is_wrong_is_said() {
    let r = resource(0, "image set 0 binding 0 elements 1 size 0 stride 0 readonly float 2d format rgba8");
    let m = module(&r, "  %9:f32 = image_load.f32 <@0 color mask 8> %8, %0\n");
    let e = outcome(&m, &Inputs::new([1, 1, 1])).unwrap_err().to_string();
    assert!(e.contains("no image is bound"), "{e}");
    let info = m.resources[crate::Res(0)].image.unwrap();
    let new = |d: ImageDesc, bytes: usize| {
        let inputs = Inputs::new([1, 1, 1]).image(0, 0, d, vec![0; bytes]);
        Environment::new(&m, &inputs, Sizes::source()).map(|_| ()).unwrap_err()
    };
    let d = ImageDesc::new(&info, Format::Rgba8, &[4, 4]);
    assert!(new(ImageDesc { format: Format::R8, ..d }, 0).contains("the program stores rgba8"));
    assert!(new(ImageDesc { format: Format::R8i, ..d }, 0).contains("component type"));
    assert!(new(ImageDesc { arrayed: true, ..d }, 0).contains("shape"));
    assert!(new(ImageDesc { levels: 4, ..d }, 0).contains("levels"));
    assert!(new(d, 65).contains("64 bytes"));
    let text = text::print(&m);
    for (from, to, says) in [
        ("mask 8", "mask 16", "mask 16"),
        ("mask 8", "mask 3", "1 results instead of 2"),
        ("%8, %0", "%8", "1 operands instead of 2"),
        ("mask 8>", "mask 8 lod>", "2 operands instead of 3"),
        ("image_load.f32", "image_load.i32", "type i32"),
        ("float 2d format", "float 2d ms format", "multisampled"),
        ("@0 color", "@1 color", "does not exist"),
        ("%9:f32 = image_load.f32 <@0 color mask 8> %8, %0", "image_store.f32 <@0 color> %8, %0", "written"),
    ] {
        assert!(text.contains(from), "{from}");
        let e = verify(&text::parse(&text.replacen(from, to, 1)).unwrap()).unwrap_err();
        assert!(e[0].contains(says), "{from} -> {to}: {}", e[0]);
    }
}

/// Undefined data is noticed; two invocations at one texel are a race.
#[test]
fn undefined_data_and_races() {
    let r = resource(0, "image set 0 binding 0 elements 1 size 0 stride 0 uint 1d format r8ui");
    let m = module(&r, "  %9:i32 = undef.i32\n  image_store.i32 <@0 color> %8, %9, %0, %0, %0\n");
    let d = desc(&m, 0, &[4]);
    let inputs = Inputs::new([1, 1, 1]).image(0, 0, d, Vec::new());
    let (_, o) = outcome(&m, &inputs).unwrap();
    assert!(matches!(o.undefined[..], [UndefinedUse::Data(_)]));
    for (at, race) in [("%8", false), ("%1", true)] {
        let m = module(&r, &format!("  image_store.i32 <@0 color> {at}, %8, %0, %0, %0\n"));
        let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
        let o = run(&m, &env, &Options { races: true, ..Options::source() }).unwrap();
        assert_eq!(o.race.is_some(), race);
    }
}
