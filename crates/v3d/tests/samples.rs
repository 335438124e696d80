//! Lookups through samplers: random ones of every kind. The lowered form gives what the source form gives, bit for bit where
//! lowering is exact. In compute shaders the code for both versions and every number of threads gives the same on the
//! simulator and passes checker B. `KEMPE_SEEDS=n` runs more of them.

mod common;

use common::{numbered, simulate_in};
use kempe_ir::exec::{Environment, ImageInput, Inputs, SamplerInput, Sizes};
use kempe_ir::image::{Component, Dim, Format, ImageDesc, put_texel};
use kempe_ir::inputs::Random;
use kempe_ir::io::{PipelineState, Slot, StageInputs, TargetFormat};
use kempe_ir::sample::{Compare, Filter, Sampler, Wrap};
use kempe_ir::{Module, Res, Stage, interp, text, verify::verify};
use kempe_v3d::compile::{Options, compile};
use kempe_v3d::instr::Version;
use kempe_v3d::lower::{Shape, StartWords, check, lower};
use kempe_v3d::sim::Order;

const ITEMS: u32 = 32;
/// Words that an invocation is given.
const WORDS: u32 = 16;

const DIMS: [(&str, Dim, bool); 7] = [
    ("1d", Dim::D1, false),
    ("1d array", Dim::D1, true),
    ("2d", Dim::D2, false),
    ("2d array", Dim::D2, true),
    ("3d", Dim::D3, false),
    ("cube", Dim::Cube, false),
    ("cube array", Dim::Cube, true),
];

/// A program with one lookup, and what it is run on.
struct Case {
    what: String,
    module: Module,
    inputs: Inputs,
    /// Nothing is rounded in another way than in the source form.
    exact: bool,
}

fn one<T: Copy>(r: &mut Random, list: &[T]) -> T {
    list[r.below(list.len() as u64) as usize]
}

fn float(r: &mut Random) -> f32 {
    r.below(1 << 16) as f32 / 65536.0
}

fn case(seed: u64, stage: Stage) -> Case {
    let mut r = Random(seed);
    let fragment = stage == Stage::Fragment;
    let (facts, dim, arrayed) = one(&mut r, &DIMS);
    let (cube, own) = (dim == Dim::Cube, kempe_ir::sample::coordinates(dim));
    let component = one(&mut r, &[Component::F32, Component::F32, Component::I32, Component::U32]);
    let floats = component == Component::F32;
    let (name, ty) = match component {
        Component::F32 => ("float", "f32"),
        Component::I32 => ("int", "i32"),
        Component::U32 => ("uint", "i32"),
    };
    let lookup = match r.below(4) {
        0 if matches!(dim, Dim::D2 | Dim::Cube) => {
            one(&mut r, &["gather_x", "gather_y", "gather_z", "gather_w"])
        }
        1 => "level",
        _ => "color",
    };
    let gather = lookup.starts_with("gather");
    let levels = ["implicit", "bias", "explicit", "gradient"];
    let level = match lookup {
        "color" => one(&mut r, &levels),
        "level" if fragment => "implicit",
        _ => "explicit",
    };
    let implicit = matches!(level, "implicit" | "bias");
    let dref = floats && lookup != "level" && r.below(3) == 0;
    let pixels = dim == Dim::D2 && !gather && r.below(6) == 0;
    let offset = if cube || lookup == "level" { 0 } else { r.below(if own == 3 { 2 } else { 3 }) };
    let separate = r.below(2) == 0;
    let elements = one(&mut r, &[1, 1, 3]);
    let sampler_elements = if separate { one(&mut r, &[1, 1, 2]) } else { 1 };
    let mask = if dref && !gather { 1 } else { 1 + r.below(15) as u32 };
    // Directions whose largest component is a power of two are divided without rounding.
    let rounded = cube && r.below(2) == 0 && floats && !gather;
    let exact = !rounded && level != "gradient";

    let (name_of_stage, items) = if fragment { ("fragment", 1) } else { ("compute", ITEMS) };
    let mut t = format!("module \"main\" {name_of_stage}\nworkgroup {items} 1 1\n");
    let mut resource = |n: u32, kind: &str, elements: u32, facts: &str| {
        t.push_str(&format!(
            "resource @{n} {kind} set 0 binding {n} elements {elements} size 0 stride 0 {facts} \"r{n}\"\n"
        ));
    };
    resource(0, "texture", elements, &format!("readonly {name} {facts}"));
    resource(1, "texture", 1, "readonly float buffer");
    resource(
        2,
        "image",
        1,
        if ty == "f32" || lookup == "level" { "float buffer format r32f" } else { "int buffer format r32i" },
    );
    if separate {
        resource(3, "sampler", sampler_elements, "readonly");
    }
    t.push_str("func\nb0:\n");
    if !fragment {
        t.push_str("  %l:i32 = builtin.i32 <local_invocation_index>\n");
        t.push_str(&format!("  %w:i32 = const.i32 <{WORDS}>\n  %base:i32 = imul.i32 %l, %w\n"));
    }
    let mut words = 0;
    let mut load = |t: &mut String, ty: &str| {
        let n = words;
        words += 1;
        t.push_str(&match fragment {
            true => format!("  %v{n}:f32 = input.f32 <location {} component {}>\n", n / 4, n % 4),
            false => format!(
                "  %n{n}:i32 = const.i32 <{n}>\n  %i{n}:i32 = iadd.i32 %base, %n{n}\n  \
                 %v{n}:f32 = image_load.f32 <@1 color mask 1> %i{n}\n"
            ),
        });
        if ty == "i32" {
            t.push_str(&format!("  %k{n}:i32 = ftosi.i32 %v{n}\n"));
            return format!("%k{n}");
        }
        format!("%v{n}")
    };
    // Order of the words: coordinates, layer, reference, level or gradients, offset, elements.
    let mut operands: Vec<String> = Vec::new();
    let mut kinds: Vec<&str> = Vec::new();
    let mut take = |t: &mut String, n: usize, kind: &'static str, ty: &str, kinds: &mut Vec<&str>| {
        for _ in 0..n {
            operands.push(load(t, ty));
            kinds.push(kind);
        }
    };
    take(&mut t, own, "place", "f32", &mut kinds);
    take(&mut t, arrayed as usize, "layer", "f32", &mut kinds);
    take(&mut t, dref as usize, "reference", "f32", &mut kinds);
    match level {
        "bias" | "explicit" => take(&mut t, 1, "level", "f32", &mut kinds),
        "gradient" => take(&mut t, 2 * own, "gradient", "f32", &mut kinds),
        _ => {}
    }
    match offset {
        1 => {
            for k in 0..own {
                t.push_str(&format!("  %o{k}:i32 = const.i32 <{}>\n", (r.below(16) as u32).wrapping_sub(8)));
                operands.push(format!("%o{k}"));
            }
        }
        2 => {
            for _ in 0..own {
                operands.push(load(&mut t, "i32"));
                kinds.push("offset");
            }
        }
        _ => {}
    }
    let mut index = |t: &mut String, n: u32, name: &str| -> Option<String> {
        match r.below(3) {
            _ if n == 1 => None,
            0 => {
                t.push_str(&format!("  %{name}:i32 = const.i32 <{}>\n", n - 1));
                Some(format!("%{name}"))
            }
            _ => {
                kinds.push(if n == 3 { "of three" } else { "of two" });
                Some(load(t, "i32"))
            }
        }
    };
    let element = index(&mut t, elements, "e");
    let sampler_element = index(&mut t, sampler_elements, "f");
    let all: Vec<String> = element.iter().chain(&sampler_element).cloned().chain(operands).collect();
    let count = match lookup {
        "color" => mask.count_ones(),
        "level" => 2,
        _ => 4,
    };
    let ty = if lookup == "level" { "f32" } else { ty };
    let results: Vec<String> = (0..count).map(|k| format!("%r{k}:{ty}")).collect();
    let flag = |there: bool, name: &str| if there { format!(" {name}") } else { String::new() };
    t.push_str(&format!(
        "  {} = sample{}.{ty} <@0{} {lookup} {level} mask {mask}{}{}{}{}{}> {}\n",
        results.join(", "),
        flag(implicit, "_implicit").replace(' ', ""),
        flag(separate, "sampler @3"),
        flag(element.is_some(), "element"),
        flag(sampler_element.is_some(), "sampler_element"),
        flag(dref, "dref"),
        flag(offset != 0, "offset"),
        flag(pixels, "pixels"),
        all.join(", ")
    ));
    // Only some results are used.
    let used =
        |k: u32| format!("%r{}", if count > 2 && seed.is_multiple_of(3) { count - 1 } else { k % count });
    if !fragment {
        t.push_str("  %four:i32 = const.i32 <4>\n  %to:i32 = imul.i32 %l, %four\n");
    }
    for k in 0..4 {
        let v = used(k);
        if fragment {
            t.push_str(&format!("  output.{ty} <location 0 component {k}> {v}\n"));
            continue;
        }
        t.push_str(&format!(
            "  %c{k}:i32 = const.i32 <{k}>\n  %t{k}:i32 = iadd.i32 %to, %c{k}\n  \
             image_store.{ty} <@2 color> %t{k}, {v}, {v}, {v}, {v}\n"
        ));
    }
    t.push_str("  return\n");
    let module = text::parse(&numbered(&t)).unwrap_or_else(|e| panic!("{e}\n{}", numbered(&t)));
    verify(&module).unwrap_or_else(|e| panic!("{}\n{}", e[0], text::print(&module)));

    let mut inputs = Inputs::new([1, 1, 1]);
    let size: Vec<u32> = match dim {
        Dim::Cube => vec![8, 8],
        _ => [8, 4, 4][..own].to_vec(),
    };
    let size: Vec<u32> = size.into_iter().chain(arrayed.then_some(3)).collect();
    let format = match component {
        Component::F32 => one(&mut r, &[Format::R32f, Format::Rgba8, Format::Rg16f]),
        Component::I32 => Format::Rgba8i,
        Component::U32 => Format::Rgba16ui,
    };
    for element in 0..elements {
        let mut desc = ImageDesc::new(&module.resources[Res(0)].image.unwrap(), format, &size);
        desc.levels = 3;
        let n = format.bytes() as usize;
        let mut bytes = vec![0; desc.bytes() as usize];
        for to in bytes.chunks_mut(n) {
            let color =
                [(); 4].map(|()| if floats { float(&mut r).to_bits() } else { r.bits() as u32 & 127 });
            put_texel(to, &format.encode(color));
        }
        inputs.images.push(ImageInput { set: 0, binding: 0, element, desc, bytes });
    }
    let mut given = Vec::new();
    for n in 0..ITEMS {
        let largest = r.below(3);
        let start = given.len();
        for (k, &kind) in kinds.iter().enumerate() {
            let sign = if r.below(2) == 0 { 1.0 } else { -1.0f32 };
            given.push(match kind {
                "place" if cube && !rounded && k as u64 == largest => sign * one(&mut r, &[0.5, 1.0, 4.0]),
                "place" if cube && !rounded => sign * float(&mut r) / 2.0,
                "place" if cube => sign * (float(&mut r) + 0.001) * 3.0,
                "place" if pixels => float(&mut r) * 12.0 - 2.0,
                "place" => float(&mut r) * 3.0 - 1.0,
                "layer" => one(&mut r, &[-1.5, -0.5, 0.0, 0.5, 1.0, 1.49, 1.5, 2.5, 9.0, 1e10]),
                "reference" => float(&mut r),
                "level" => one(&mut r, &[-1.0, 0.0, 0.25, 0.5, 1.0, 1.75, 7.0]) + float(&mut r) / 8.0,
                "gradient" => one(&mut r, &[0.0, 0.1, 0.5]) * sign * float(&mut r),
                "offset" => r.below(16) as f32 - 8.0,
                // The same in a quad.
                _ if fragment && n % 4 != 0 => given[start - WORDS as usize + k],
                "of three" => r.below(3) as f32,
                _ => r.below(2) as f32,
            });
        }
        given.resize(start + WORDS as usize, 0.0);
    }
    if fragment {
        let row =
            |k: u32| given.iter().skip(k as usize).step_by(WORDS as usize).map(|v| v.to_bits()).collect();
        let place = |k: u32| (Slot::Location(k as u8 / 4), k as u8 % 4);
        inputs.stage = Some(StageInputs {
            invocations: ITEMS,
            values: (0..WORDS).map(|k| (place(k), row(k))).collect(),
            ..StageInputs::default()
        });
    }
    let list = ImageDesc::new(&module.resources[Res(1)].image.unwrap(), Format::R32f, &[ITEMS * WORDS]);
    let bytes = given.iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
    inputs = inputs.image(0, 1, list, bytes);
    let out = module.resources[Res(2)].image.unwrap();
    inputs = inputs.image(0, 2, ImageDesc::new(&out, out.storage_format(), &[4 * ITEMS]), Vec::new());
    for element in 0..sampler_elements.max(if separate { 1 } else { elements }) {
        let filter =
            |r: &mut Random| if exact { one(r, &[Filter::Nearest, Filter::Linear]) } else { Filter::Linear };
        let wraps = [Wrap::Repeat, Wrap::Mirror, Wrap::Clamp, Wrap::Border, Wrap::MirrorOnce];
        let sampler = Sampler {
            magnify: filter(&mut r),
            minify: filter(&mut r),
            mip: filter(&mut r),
            wrap: [(); 3].map(|()| one(&mut r, &wraps)),
            compare: one(&mut r, &[Compare::Less, Compare::GreaterEqual, Compare::NotEqual]),
            min_level: one(&mut r, &[0.0, 0.5]),
            max_level: one(&mut r, &[1000.0, 1.5]),
            bias: one(&mut r, &[0.0, -0.25, 1.0]),
            border: if floats { [0.5f32.to_bits(); 4] } else { [3; 4] },
            unnormalised: false,
        };
        let binding = if separate { 3 } else { 0 };
        inputs.samplers.push(SamplerInput { set: 0, binding, element, sampler });
    }
    let what = format!("seed {seed}: {name} {facts} {lookup} {level}");
    Case { what, module, inputs, exact }
}

fn run(m: &Module, inputs: &Inputs, sizes: Sizes, options: &interp::Options, what: &str) -> Vec<u32> {
    let env = Environment::new(m, inputs, sizes).unwrap();
    let r = interp::run(m, &env, options).unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(m)));
    assert_eq!(r.undefined, [], "{what}\n{}", text::print(m));
    if let Some(stage) = r.stage {
        let row = |k| stage.values.get(&(Slot::Location(0), k, 0)).unwrap_or_else(|| panic!("{what}"));
        let rows = [0, 1, 2, 3].map(row);
        let word = |n: usize, k: usize| {
            rows[k][n].unwrap_or_else(|| panic!("{what}: undefined\n{}", text::print(m)))
        };
        return (0..4 * ITEMS as usize).map(|n| word(n / 4, n % 4)).collect();
    }
    output(&env.image_contents(&r.memory), inputs)
}

/// The words of the output image.
fn output<T: AsRef<[u8]>>(images: &[T], inputs: &Inputs) -> Vec<u32> {
    let n = inputs.images.iter().position(|i| i.binding == 2).unwrap();
    images[n].as_ref().chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// A step of a coordinate along two axes and one of the level, each a 256th of the distance of two texels in 0..1, twice where
/// the levels differ.
const BOUND: f32 = 5.0 / 256.0;

fn seeds(default: u64) -> u64 {
    std::env::var("KEMPE_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// What the lowered form gives, after a comparison with the source form; how many words differ.
fn lowered(case: &Case, optimised: &Module, version: Version, want: &[u32]) -> (Vec<u32>, usize) {
    let what = &case.what;
    let mut m = optimised.clone();
    // Colours as they are, not as halves.
    let state = PipelineState { targets: [TargetFormat::Word; 8], ..PipelineState::default() };
    let lowered = lower(&mut m, version, &Shape { state, ..Shape::default() })
        .unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(optimised)));
    verify(&m).unwrap_or_else(|e| panic!("{what}: {}\n{}", e[0], text::print(&m)));
    check(&m).unwrap_or_else(|e| panic!("{what}: {e}"));
    let printed = text::print(&m);
    assert_eq!(text::print(&text::parse(&printed).unwrap()), printed, "{what}");
    let sizes = Sizes {
        wgs_per_supergroup: if lowered.may_share_batches { 2 } else { 1 },
        scratch_bytes_per_thread: 0,
        threads: 16,
    };
    let start = StartWords { workgroup_size: m.workgroup_size, threads_per_qpu: 4, qpus: 4 };
    let got = run(&m, &case.inputs, sizes, &interp::Options::machine(&start), what);
    for (&a, &b) in want.iter().zip(&got) {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let fits = a == b || !case.exact && (x - y).abs() <= BOUND;
        assert!(fits, "{what}: {x} {y} ({a:#x}, {b:#x})\n{}\n{printed}", text::print(optimised));
    }
    let different = want.iter().zip(&got).filter(|(a, b)| a != b).count();
    (got, different)
}

/// Versions and how much is optimised before.
const WAYS: [(Version, kempe_opt::Level); 3] = [
    (Version::V42, kempe_opt::Level::O0),
    (Version::V71, kempe_opt::Level::O0),
    (Version::V71, kempe_opt::Level::O2),
];

#[test]
fn lookups() {
    let (mut compiled, mut refused, mut different) = (0, 0, 0);
    for seed in 0..seeds(300) {
        let case = case(seed, Stage::Compute);
        let what = &case.what;
        let want = run(&case.module, &case.inputs, Sizes::source(), &interp::Options::source(), what);
        for (version, level) in WAYS {
            let mut optimised = case.module.clone();
            kempe_opt::optimise(&mut optimised, level);
            let (got, n) = lowered(&case, &optimised, version, &want);
            different += n;
            for threads in [None, Some(2), Some(4)] {
                let options = Options { threads, verify: true, ..Options::default() };
                match compile(optimised.clone(), version, &options, &mut ()) {
                    Ok(a) => {
                        let ran = simulate_in(&case.module, &a, version, &case.inputs, Order::default());
                        let ran = ran.unwrap_or_else(|e| panic!("{what}: {e}\n{}", text::print(&optimised)));
                        assert!(output(&ran.images, &case.inputs) == got, "{what}: simulator");
                        compiled += 1;
                    }
                    Err(e) => {
                        assert!(threads == Some(4) && e.message.contains("needs 2 threads"), "{what}: {e}");
                        refused += 1;
                    }
                }
            }
        }
    }
    println!("{compiled} compiled, {refused} refused, {different} words differ within the bound");
    assert!(compiled > 8 * refused);
}

/// Levels of detail from the quad.
#[test]
fn fragments() {
    let mut different = 0;
    for seed in 0..seeds(300) {
        let case = case(seed, Stage::Fragment);
        let what = &case.what;
        let want = run(&case.module, &case.inputs, Sizes::source(), &interp::Options::source(), what);
        for (version, level) in WAYS {
            let mut optimised = case.module.clone();
            kempe_opt::optimise(&mut optimised, level);
            different += lowered(&case, &optimised, version, &want).1;
            compile(optimised, version, &Options::default(), &mut ())
                .unwrap_or_else(|e| panic!("{what}: {e}"));
        }
    }
    println!("{different} words differ within the bound");
}
