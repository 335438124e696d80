//! Vertices and fragments.

use super::*;
use crate::exec::{Inputs, Sizes};
use crate::io::{Slot, StageInputs, StageOutputs};
use crate::module::Builtin;

fn run_stage(text: &str, stage: StageInputs, buffer: Vec<u8>) -> (StageOutputs, Vec<u8>) {
    let m = crate::text::parse(text).unwrap();
    crate::verify::verify(&m).unwrap_or_else(|e| panic!("{e:#?}"));
    let mut inputs = Inputs::new([0; 3]).buffer(0, 0, buffer);
    inputs.stage = Some(stage);
    let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
    let outcome = Program::new(&m).unwrap().run(&env, &Options::source()).unwrap();
    let bytes = env.buffer_contents(&outcome.memory)[0].to_vec();
    (outcome.stage.unwrap(), bytes)
}

/// 20 vertices are two batches, the second one with four lanes; what is not given is undefined.
#[test]
fn vertices() {
    let text = "module \"v\" vertex\nworkgroup 1 1 1\nresource @0 storage set 0 binding 0 elements 1 size 4 stride 0 \"b\"\nfunc\nb0:\n  \
        %0:i32 = builtin.i32 <vertex_index>\n  %1:i32 = input.i32 <location 1 component 2>\n  %2:i32 = iadd.i32 %0, %1\n  \
        %3:i32 = input.i32 <location 7 component 0>\n  output.i32 <location 0 component 3> %2\n  \
        output.i32 <point_size component 0> %3\n  return\n";
    let stage = StageInputs {
        invocations: 20,
        values: [((Slot::Location(1), 2), (0..20).map(|n| 100 * n).collect())].into(),
        builtins: [(Builtin::VertexIndex, (0..20).collect())].into(),
        ..StageInputs::default()
    };
    let (out, _) = run_stage(text, stage, vec![0; 4]);
    let want: Vec<Option<u32>> = (0..20).map(|n| Some(101 * n)).collect();
    assert_eq!(out.values[&(Slot::Location(0), 3, 0)], want);
    assert_eq!(out.values[&(Slot::PointSize, 0, 0)], [None; 20]);
}

/// Helpers take part in derivatives, but neither store nor count nor give colours; neither does what was demoted.
#[test]
fn fragments() {
    let text = "module \"f\" fragment\nworkgroup 1 1 1\nresource @0 storage set 0 binding 0 elements 1 size 4 stride 0 \"b\"\nfunc\nb0:\n  \
        %0:f32 = input.f32 <location 0 component 0>\n  %1:f32 = ddx.f32 %0\n  %2:f32 = ddy.f32 %0\n  \
        %3:f32 = const.f32 <0x41200000>\n  %4:bool = flt.f32 %3, %0\n  branch %4, b1, b2\n\
        b1:\n  demote.bool\n  jump b2\n\
        b2:\n  %5:bool = is_helper.bool\n  %6:i32 = const.i32 <1>\n  %7:i32 = const.i32 <0>\n  %8:i32 = select.i32 %5, %6, %7\n  \
        %9:ptr.storage = resource_addr.ptr.storage <@0>\n  %10:i32 = atomic.i32 <add storage> %9, %6\n  \
        output.f32 <location 0 component 0> %1\n  output.f32 <location 0 component 1> %2\n  \
        output.i32 <location 1 component 0> %8\n  return\n";
    let x = [1.0f32, 3.0, 6.0, 10.0, 2.0, 2.0, 20.0, 2.0];
    let stage = StageInputs {
        invocations: 8,
        values: [((Slot::Location(0), 0), x.map(f32::to_bits).to_vec())].into(),
        helpers: vec![false, true],
        ..StageInputs::default()
    };
    let (out, bytes) = run_stage(text, stage, vec![0; 4]);
    let get = |component: u8| -> Vec<Option<f32>> {
        out.values[&(Slot::Location(0), component, 0)].iter().map(|v| v.map(f32::from_bits)).collect()
    };
    let (yes, no) = (Some, None);
    assert_eq!(get(0), [yes(2.0), no, yes(4.0), yes(4.0), yes(0.0), yes(0.0), no, yes(-18.0)]);
    assert_eq!(get(1), [yes(5.0), no, yes(5.0), yes(7.0), yes(18.0), yes(0.0), no, yes(0.0)]);
    assert_eq!(out.helpers, [false, true, false, false, false, false, true, false]);
    // Six of eight count.
    assert_eq!(bytes, [6, 0, 0, 0]);
    assert!(out.values[&(Slot::Location(1), 0, 0)].iter().all(|v| v.is_none_or(|v| v == 0)));
}

/// A derivative whose neighbour went another way is undefined.
#[test]
fn lost_neighbours() {
    let text = "module \"f\" fragment\nworkgroup 1 1 1\nresource @0 storage set 0 binding 0 elements 1 size 4 stride 0 \"b\"\nfunc\nb0:\n  \
        %0:f32 = input.f32 <location 0 component 0>\n  %1:f32 = const.f32 <0x40000000>\n  %2:bool = flt.f32 %0, %1\n  \
        branch %2, b1, b2\nb1:\n  %3:f32 = ddx.f32 %0\n  output.f32 <location 0 component 0> %3\n  jump b2\nb2:\n  return\n";
    let stage = StageInputs {
        invocations: 4,
        values: [((Slot::Location(0), 0), [0.0f32, 1.0, 1.5, 5.0].map(f32::to_bits).to_vec())].into(),
        ..StageInputs::default()
    };
    let (out, _) = run_stage(text, stage, vec![0; 4]);
    let one = Some(1f32.to_bits());
    assert_eq!(out.values[&(Slot::Location(0), 0, 0)], [one, one, None, None]);
}

/// The level of detail comes from the quad; a lookup under a condition that a neighbour misses is undefined.
#[test]
fn lookups() {
    use crate::exec::{ImageInput, SamplerInput};
    use crate::image::{Component, Dim, Format, ImageDesc, ImageInfo};
    use crate::sample::{Filter, Sampler, Wrap};
    let text = "module \"f\" fragment\nworkgroup 1 1 1\n\
        resource @0 texture set 0 binding 3 elements 1 size 0 stride 0 readonly float 2d \"t\"\n\
        resource @1 sampler set 0 binding 4 elements 1 size 0 stride 0 readonly \"s\"\nfunc\nb0:\n  \
        %0:f32 = input.f32 <location 0 component 0>\n  %1:f32 = const.f32 <0x3f000000>\n  \
        %2:f32, %3:f32 = sample_implicit.f32 <@0 sampler @1 color implicit mask 9> %0, %1\n  \
        %4:f32 = const.f32 <0>\n  %5:f32 = sample.f32 <@0 sampler @1 color explicit mask 1> %0, %1, %4\n  \
        output.f32 <location 0 component 0> %2\n  output.f32 <location 0 component 1> %3\n  \
        output.f32 <location 0 component 2> %5\n  %6:bool = flt.f32 %0, %1\n  branch %6, b1, b2\n\
        b1:\n  %7:f32 = sample_implicit.f32 <@0 color implicit mask 1> %0, %1\n  \
        output.f32 <location 1 component 0> %7\n  jump b2\nb2:\n  return\n";
    let m = crate::text::parse(text).unwrap();
    crate::verify::verify(&m).unwrap_or_else(|e| panic!("{e:#?}"));
    assert_eq!(
        crate::text::print(&crate::text::parse(&crate::text::print(&m)).unwrap()),
        crate::text::print(&m)
    );
    let info = ImageInfo {
        dim: Dim::D2,
        arrayed: false,
        multisampled: false,
        depth: false,
        component: Component::F32,
        format: None,
    };
    let mut desc = ImageDesc::new(&info, Format::R32f, &[4, 1]);
    desc.levels = 3;
    let bytes = (0..7).flat_map(|n| (n as f32).to_le_bytes()).collect();
    let mut inputs = Inputs::new([0; 3]);
    inputs.images.push(ImageInput { set: 0, binding: 3, element: 0, desc, bytes });
    let nearest = Sampler {
        magnify: Filter::Nearest,
        minify: Filter::Nearest,
        mip: Filter::Nearest,
        wrap: [Wrap::Clamp; 3],
        ..Sampler::default()
    };
    inputs.samplers.push(SamplerInput { set: 0, binding: 4, element: 0, sampler: nearest });
    // Steps of a quarter are texels; of a half, every second one: level 1.
    let x = [0.1f32, 0.35, 0.1, 0.35, 0.0, 0.5, 0.0, 0.5];
    inputs.stage = Some(StageInputs {
        invocations: 8,
        values: [((Slot::Location(0), 0), x.map(f32::to_bits).to_vec())].into(),
        ..StageInputs::default()
    });
    let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
    let out = Program::new(&m).unwrap().run(&env, &Options::source()).unwrap().stage.unwrap();
    let get = |location: u8, component: u8| -> Vec<Option<f32>> {
        let list = &out.values[&(Slot::Location(location), component, 0)];
        list.iter().map(|v| v.map(f32::from_bits)).collect()
    };
    let some = |v: [f32; 8]| v.map(Some).to_vec();
    assert_eq!(get(0, 0), some([0.0, 1.0, 0.0, 1.0, 4.0, 5.0, 4.0, 5.0]));
    assert_eq!(get(0, 1), some([1.0; 8]));
    assert_eq!(get(0, 2), some([0.0, 1.0, 0.0, 1.0, 0.0, 2.0, 0.0, 2.0]));
    assert!(get(1, 0)[..4].iter().all(Option::is_some) && get(1, 0)[4..].iter().all(Option::is_none));
}

/// Bounds of outputs: what is exact stays so, a derivative of a curve may be that of the other row, a lookup depends on how far its
/// coordinate may be off.
#[test]
fn bounds_of_outputs() {
    let text = "module \"f\" fragment\nworkgroup 1 1 1\n\
        resource @0 texture set 0 binding 1 elements 1 size 0 stride 0 readonly float 2d \"t\"\nfunc\nb0:\n  \
        %0:f32 = input.f32 <location 0 component 0>\n  %1:f32 = input.f32 <location 0 component 1>\n  \
        %2:f32 = fmul.f32 %0, %1\n  %3:f32 = ddx.f32 %0\n  %4:f32 = ddx.f32 %2\n  %5:f32 = fsqrt.f32 %1\n  \
        %6:f32 = sample_implicit.f32 <@0 color implicit mask 1> %0, %0\n  \
        %7:f32 = sample_implicit.f32 <@0 color implicit mask 1> %5, %0\n  \
        output.f32 <location 0 component 0> %3\n  output.f32 <location 0 component 1> %4\n  \
        output.f32 <location 0 component 2> %6\n  output.f32 <location 0 component 3> %7\n  return\n";
    let m = crate::text::parse(text).unwrap_or_else(|e| panic!("{e}"));
    crate::verify::verify(&m).unwrap_or_else(|e| panic!("{e:#?}"));
    let info = m.resources[crate::Res(0)].image.unwrap();
    let desc = crate::image::ImageDesc::new(&info, crate::image::Format::R32f, &[2, 2]);
    let mut inputs = Inputs::new([0; 3]);
    let bytes = [0.0f32, 1.0, 2.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    inputs.images.push(crate::exec::ImageInput { set: 0, binding: 1, element: 0, desc, bytes });
    let sampler =
        crate::sample::Sampler { wrap: [crate::sample::Wrap::Clamp; 3], ..crate::sample::Sampler::default() };
    inputs.samplers.push(crate::exec::SamplerInput { set: 0, binding: 1, element: 0, sampler });
    let values = [[0.5f32, 0.625, 0.5, 0.625], [0.25, 0.25, 0.5, 0.5]].map(|l| l.map(f32::to_bits).to_vec());
    inputs.stage = Some(StageInputs {
        invocations: 4,
        values: (0..2).map(|k| ((Slot::Location(0), k as u8), values[k].clone())).collect(),
        ..StageInputs::default()
    });
    let env = Environment::new(&m, &inputs, Sizes::source()).unwrap();
    let options = Options { bounds: true, ..Options::source() };
    let outcome = Program::new(&m).unwrap().run(&env, &options).unwrap();
    let known = |component: u8| outcome.output_bounds[&(Slot::Location(0), component, 0)][0];
    assert_eq!(known(0), Shadow::Exact);
    // The products of the rows differ by 1/32 and 1/16.
    assert!(matches!(known(1), Shadow::Float(e) if (0.03125..0.032).contains(&e)), "{:?}", known(1));
    assert!(matches!(known(2), Shadow::Float(e) if e < 1e-5), "{:?}", known(2));
    // A step of 1/256 on a slope of 1 or 2 texels, twice.
    assert!(matches!(known(3), Shadow::Float(e) if (1.0 / 256.0..0.05).contains(&e)), "{:?}", known(3));
}
