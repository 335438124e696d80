use super::*;
use crate::exec::{Environment, Sizes};
use crate::interp;
use crate::io::{Interpolation, Slot};

const FRAGMENT: &str = "module \"f\" fragment\nworkgroup 1 1 1\n\
    resource @0 texture set 0 binding 0 elements 1 size 0 stride 0 readonly float cube \"t\"\n\
    resource @1 sampler set 0 binding 1 elements 1 size 0 stride 0 readonly \"s\"\nfunc\nb0:\n  \
    %0:f32 = input.f32 <location 0 component 0>\n  %1:f32 = input.f32 <location 0 component 1 noperspective>\n  \
    %2:i32 = input.i32 <location 1 component 0 flat>\n  %3:f32 = ddx.f32 %0\n  \
    %4:f32 = sample_implicit.f32 <@0 sampler @1 color implicit mask 1> %0, %1, %3\n  \
    output.f32 <location 0 component 0> %3\n  output.f32 <location 0 component 1> %4\n  \
    output.i32 <location 1 component 0> %2\n  return\n";

fn search_one(text: &str, seed: u64) -> (Module, Inputs, interp::Outcome) {
    let m = crate::text::parse(text).unwrap();
    crate::verify::verify(&m).unwrap_or_else(|e| panic!("{e:#?}"));
    let usage = Usage::scan(&m);
    let mut outcome = None;
    let inputs = search(&m, &usage, seed, |inputs| {
        let env = Environment::new(&m, inputs, Sizes::source()).unwrap();
        match interp::run(&m, &env, &interp::Options::source()) {
            Ok(o) => {
                outcome = Some(o);
                Verdict::Fine
            }
            Err(e) => Verdict::Useless(e.to_string()),
        }
    });
    (m, inputs.unwrap(), outcome.unwrap())
}

#[test]
fn fragments_are_quads_of_planes() {
    let (mut dead, mut helpers, mut lookups) = (0, 0, std::collections::BTreeSet::new());
    for seed in 0..20 {
        let (_, inputs, outcome) = search_one(FRAGMENT, seed);
        let stage = inputs.stage.unwrap();
        let out = outcome.stage.unwrap();
        assert!(outcome.undefined.is_empty());
        assert_eq!(out.helpers, stage.helpers);
        assert_eq!((inputs.images.len(), inputs.samplers.len()), (1, 1));
        inputs.images[0].desc.check().unwrap();
        let coord = |k: u8, n: usize| f32::from_bits(stage.builtins[&Builtin::FragCoord(k)][n]);
        for n in 0..stage.invocations as usize {
            let flags = stage.payload[&6][n];
            assert_eq!(flags != 0, !stage.helpers[n]);
            let given = out.values[&(Slot::Location(0), 0, 0)][n].is_some();
            assert_eq!(given, !stage.helpers[n], "seed {seed} lane {n}");
            helpers += stage.helpers[n] as u32;
            if stage.is_dead(n) {
                dead += 1;
                continue;
            }
            assert_eq!((coord(0, n & !1) + (n & 1) as f32, coord(0, n).fract()), (coord(0, n), 0.5));
            assert_eq!(coord(1, n & !2) + (n >> 1 & 1) as f32, coord(1, n));
            let w = f32::from_bits(stage.payload[&0][n]);
            assert!(w > 0.0 && coord(3, n) > 0.0 && (0.0..=1.0).contains(&coord(2, n)));
            assert!(f32::from_bits(stage.payload[&1][n]) > 0.0);
            let how = [Interpolation::Smooth, Interpolation::NoPerspective, Interpolation::Flat];
            let places = [(Slot::Location(0), 0), (Slot::Location(0), 1), (Slot::Location(1), 0)];
            for (place, how) in places.into_iter().zip(how) {
                assert_eq!(stage.planes[&place].value(n, how, w.to_bits()), stage.values[&place][n]);
            }
            assert!(stage.values[&places[2]][n] < 16);
            lookups.extend(out.values[&(Slot::Location(0), 1, 0)][n]);
        }
    }
    assert!(dead > 0 && dead < helpers && lookups.len() > 100, "{dead} {helpers} {}", lookups.len());
}

#[test]
fn vertices_have_attributes() {
    let text = "module \"v\" vertex\nworkgroup 1 1 1\nfunc\nb0:\n  %0:i32 = builtin.i32 <vertex_index>\n  \
        %1:f32 = input.f32 <location 2 component 1>\n  %2:i32 = builtin.i32 <instance_index>\n  \
        output.f32 <position component 0> %1\n  output.i32 <location 0 component 0> %0\n  \
        output.i32 <location 0 component 1> %2\n  return\n";
    for seed in 0..10 {
        let (_, inputs, outcome) = search_one(text, seed);
        let count = inputs.stage.unwrap().invocations;
        assert!(count > 16);
        for list in outcome.stage.unwrap().values.values() {
            assert!(list.len() == count as usize && list.iter().all(Option::is_some));
        }
    }
}
