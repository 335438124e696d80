//! Images in SPIR-V: handles, loads, stores, atomics, sizes, and what is refused.

mod common;

use common::{body, convert, shader};
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::image::{Format, ImageDesc};
use kempe_ir::{Module, Res, ResKind, interp, text};

/// Globals: an image type `%image` with these operands (dimension, depth, arrayed, multisampled, sampled, format), an
/// array of four at 1:5 as `%images` and one at 1:6 as `%one`.
fn globals(component: &str, facts: &str) -> String {
    format!(
        "OpDecorate %images 34 1
        OpDecorate %images 33 5
        OpDecorate %one 34 1
        OpDecorate %one 33 6
        %image = OpTypeImage %{component} {facts}
        %many = OpTypeArray %image %u4
        %pmany = OpTypePointer 0 %many
        %pimage = OpTypePointer 0 %image
        %ptexel = OpTypePointer 11 %{component}
        %images = OpVariable %pmany 0
        %one = OpVariable %pimage 0"
    )
}

fn module(globals: &str, code: &str) -> Result<Module, String> {
    convert(&shader(globals, &body(code)))
}

fn fine(globals: &str, code: &str) -> (Module, String) {
    let m = module(globals, code).unwrap_or_else(|e| panic!("{e}"));
    kempe_ir::verify::verify(&m).unwrap_or_else(|e| panic!("{}\n{}", e[0], text::print(&m)));
    let t = text::print(&m);
    (m, t)
}

const R32UI: i32 = 33;

#[test]
fn loads_stores_and_atomics() {
    let g = globals("uint", &format!("1 0 0 0 2 {R32UI}"));
    let (m, text) = fine(
        &g,
        "%p = OpAccessChain %pimage %images %u2
        %i = OpLoad %image %p
        %c = OpCompositeConstruct %v2uint %x %u1
        %t = OpImageRead %v4uint %i %c
        %t0 = OpCompositeExtract %uint %t 0
        %o = OpLoad %image %one
        OpImageWrite %o %c %t 0x800
        %pt = OpImageTexelPointer %ptexel %one %c %u0
        %old = OpAtomicIAdd %uint %pt %u1 %u0 %a
        %r = OpIAdd %uint %t0 %old",
    );
    for part in [
        "image_load.i32 <@2 color mask 15 element> ",
        "image_store.i32 <@3 color volatile> ",
        "image_atomic.i32 <@3 add> ",
        "resource @2 image set 1 binding 5 elements 4 size 0 stride 0 uint 2d format r32ui \"\"",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let info = m.resources[Res(2)].image.unwrap();
    let desc = ImageDesc::new(&info, Format::R32ui, &[8, 2]);
    let words = |f: fn(u32) -> u32| (0..16u32).flat_map(|k| f(k).to_le_bytes()).collect::<Vec<u8>>();
    let mut inputs = Inputs::new([1, 1, 1])
        .buffer(0, 0, vec![0; 64])
        .buffer(0, 1, (0..16u32).flat_map(|k| (100 * k).to_le_bytes()).collect())
        .image(1, 5, desc, words(|k| 1000 + k))
        .image(1, 6, desc, Vec::new());
    inputs.images[0].element = 2;
    let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
    let o = interp::run(&m, &env, &interp::Options::source()).unwrap();
    let out = env.buffer_contents(&o.memory)[0].to_vec();
    let get = |b: &[u8], k: usize| u32::from_le_bytes([b[4 * k], b[4 * k + 1], b[4 * k + 2], b[4 * k + 3]]);
    // What was read is stored, and comes back from the addition.
    assert!((0..8).all(|k| get(&out, k) == 2 * (1008 + k as u32)));
    let one = env.image_contents(&o.memory)[1];
    assert!((0..8).all(|k| get(one, 8 + k) == 1008 + 101 * k as u32));
}

#[test]
fn fetches_and_sizes() {
    // Sampled 2D array of floats without a format.
    let g = globals("float", "1 0 1 0 1 0");
    let (m, text) = fine(
        &g,
        "%i = OpLoad %image %one
        %c = OpCompositeConstruct %v3uint %x %u1 %u2
        %t = OpImageFetch %v4float %i %c 2 %u3
        %s = OpImageQuerySizeLod %v3uint %i %u1
        %n = OpImageQueryLevels %uint %i
        %s2 = OpCompositeExtract %uint %s 2
        %t1 = OpCompositeExtract %float %t 1
        %ti = OpConvertFToU %uint %t1
        %sum = OpIAdd %uint %s2 %n
        %r = OpIAdd %uint %sum %ti",
    );
    assert_eq!(m.resources[Res(2)].kind, ResKind::Texture);
    for part in [
        "image_load.f32 <@2 color mask 15 lod> ",
        "image_size.i32 <@2 color lod> ",
        "image_levels.i32 <@2 color>",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // Level 0 is no operand.
    let (_, text) = fine(
        &g,
        "%i = OpLoad %image %one
        %c = OpCompositeConstruct %v3uint %x %u1 %u2
        %t = OpImageFetch %v4float %i %c 2 %u0
        %t1 = OpCompositeExtract %float %t 1
        %r = OpConvertFToU %uint %t1",
    );
    assert!(text.contains("image_load.f32 <@2 color mask 15> "), "{text}");
}

#[test]
fn what_is_refused() {
    let read = "%i = OpLoad %image %one
        %c = OpCompositeConstruct %v2uint %x %u1
        %t = OpImageRead %v4uint %i %c
        %r = OpCompositeExtract %uint %t 0";
    let no = |facts: &str, code: &str| match module(&globals("uint", facts), code) {
        Ok(_) => panic!("{facts}: taken\n{code}"),
        Err(e) => e,
    };
    assert!(module(&globals("uint", "1 0 0 0 2 33"), read).is_ok());
    for (facts, code, says) in [
        ("1 0 0 1 2 33", read, "multisampled"),
        ("6 0 0 0 2 33", read, "only fragment shaders read attachments"),
        ("1 0 0 0 2 40", read, "format"),
        ("1 0 0 0 2 3", read, "component type"),
        ("1 0 0 0 1 0", read, "the other kind"),
        ("2 0 0 0 2 33", read, "2 coordinates instead of 3"),
        ("1 0 0 0 2 33", "%i = OpLoad %image %one\n %r = OpIAdd %uint %i %u0", "an image, not a number"),
        ("1 0 0 0 2 33", "%r = OpLoad %uint %one\n", ""),
        (
            "1 0 0 0 2 30",
            "%c = OpCompositeConstruct %v2uint %x %u1
            %pt = OpImageTexelPointer %ptexel %one %c %u0
            %r = OpAtomicIAdd %uint %pt %u1 %u0 %a",
            "r32ui",
        ),
        (
            "1 0 0 0 2 33",
            &read.replace("OpImageRead %v4uint %i %c", "OpImageRead %v4uint %i %c 0x40 %u0"),
            "sample",
        ),
        ("1 0 0 0 2 33", &read.replace("OpImageRead %v4uint", "OpImageRead %v4float"), "texel"),
        ("1 0 0 0 2 33", &read.replace("%one", "%images"), "must be an image"),
    ] {
        let e = no(facts, code);
        assert!(e.contains(says), "{facts}\n{code}\n{e}");
    }
}
