use super::*;
use kempe_ir::io::{Interpolation, Sampling, Slot};
use kempe_mir::{ColorTarget, Graphics, Varying, VaryingSource, VertexRow};

fn sample() -> Artifact {
    let (res, element) = (Res(1), 2);
    let words = [
        UniformWord::BufferAddr { res, element },
        UniformWord::BufferSize { res, element },
        UniformWord::PushWord(12),
        UniformWord::PushAddr,
        UniformWord::ConstantAddr,
        UniformWord::NumWorkgroups(0),
        UniformWord::NumWorkgroups(2),
        UniformWord::ScratchAddr,
        UniformWord::ScratchBytesPerThread,
        UniformWord::SharedAddr,
        UniformWord::TextureState { res, element },
        UniformWord::ImageSize { res, element, axis: Axis::Layers },
    ];
    let mut uniforms: Vec<UniformSource> =
        words.iter().enumerate().map(|(i, &w)| UniformSource::Word(w, i as u32 * 0x1000_0001)).collect();
    uniforms.push(UniformSource::Const(0xdead_beef));
    let kinds = [
        ResKind::StorageBuffer,
        ResKind::UniformBuffer,
        ResKind::PushConstants,
        ResKind::Other,
        ResKind::Image,
        ResKind::Texture,
    ];
    let resources = kinds.iter().enumerate().map(|(i, &kind)| Resource {
        kind,
        set: i as u32,
        binding: 7,
        elements: 1,
        size: 16,
        tail_stride: 4,
        name: "data \"x\"\n".to_owned(),
        read_only: i == 1,
        image: kind.is_image().then_some(ImageInfo {
            dim: Dim::D2,
            arrayed: true,
            multisampled: false,
            depth: false,
            component: Component::F32,
            format: (kind == ResKind::Image).then_some(Format::Rgba8),
        }),
    });
    Artifact {
        target: "v3d71".to_owned(),
        entry: "main".to_owned(),
        stage: Stage::Compute,
        code: kempe_mir::code_of_words(&[0x3c00_3186_bb80_0000, 1, u64::MAX]),
        uniforms,
        threads: 4,
        single_section: true,
        workgroup_size: [64, 2, 1],
        shared_bytes: 256,
        scratch_bytes: 128,
        constant_data: vec![0, 1, 0xab, 0xff],
        uses_barrier: true,
        low_addresses: true,
        may_share_batches: false,
        resources: resources.collect(),
        graphics: None,
        stats: Stats {
            instructions: 1,
            threads: 2,
            loops: 3,
            uniforms: 4,
            max_temps: 5,
            spills: 6,
            fills: 7,
            scratch: 8,
            recomputed: 9,
            sfu_stalls: 10,
            inst_and_stalls: 11,
            nops: 12,
            code_bytes: 13,
            cycles: 1 << 40,
            edit_cycles: 14,
            predicted_edit_cycles: 15,
        },
        attempts: 2,
    }
}

#[test]
fn what_was_written_is_read_back() {
    let artifact = sample();
    let text = write(&artifact);
    assert_eq!(read(&text).unwrap(), artifact);
    assert_eq!(write(&read(&text).unwrap()), text);
}

fn graphics_sample(stage: Stage) -> Artifact {
    let mut graphics = Graphics { center_w: true, late_tests: true, ..Graphics::default() };
    if stage == Stage::Vertex {
        graphics.binning = true;
        graphics.input_rows = vec![
            VertexRow::InstanceId,
            VertexRow::BaseInstance,
            VertexRow::VertexId,
            VertexRow::Attribute { location: 3, component: 2 },
        ];
        graphics.output_rows = vec![
            VertexRow::Clip(3),
            VertexRow::Screen(1),
            VertexRow::Depth,
            VertexRow::ReciprocalW,
            VertexRow::PointSize,
            VertexRow::Varying(Slot::Location(7), 3),
            VertexRow::Varying(Slot::ClipDistance, 5),
        ];
    } else {
        let varying = |source, interpolation, sampling| Varying { source, interpolation, sampling };
        let output = VaryingSource::Output(Slot::Location(200), 1);
        graphics.varyings = vec![
            varying(output, Interpolation::Smooth, Sampling::Centroid),
            varying(VaryingSource::Output(Slot::Layer, 0), Interpolation::Flat, Sampling::Center),
            varying(VaryingSource::PrimitiveId, Interpolation::Flat, Sampling::Center),
            varying(VaryingSource::PointCoord(1), Interpolation::NoPerspective, Sampling::Sample),
        ];
        graphics.targets = vec![
            ColorTarget { target: 0, components: 4, wide: false },
            ColorTarget { target: 7, components: 1, wide: true },
        ];
        graphics.writes_depth = true;
        graphics.per_sample = true;
    }
    Artifact { stage, graphics: Some(graphics), ..sample() }
}

#[test]
fn graphics_programs_are_read_back() {
    for stage in [Stage::Vertex, Stage::Fragment] {
        let artifact = graphics_sample(stage);
        let text = write(&artifact);
        assert_eq!(read(&text).unwrap(), artifact);
        assert_eq!(write(&read(&text).unwrap()), text);
    }
}

#[test]
fn impossible_graphics_are_refused() {
    let says = |text: &str, changes: &[(&str, &str, &str)]| {
        for (from, to, says) in changes {
            assert!(text.contains(from), "{from}");
            let e = read(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(e.contains(says), "{from} -> {to}: {e}");
        }
    };
    says(
        &write(&graphics_sample(Stage::Vertex)),
        &[
            ("\"graphics\":", "\"graphic\":", "graphic"),
            ("\"stage\": \"vertex\"", "\"stage\": \"fragment\"", "input_rows"),
            ("\"stage\": \"vertex\"", "\"stage\": \"compute\"", "graphics"),
            ("\"kind\": \"instance-id\"", "\"kind\": \"depth\"", "input_rows[0]"),
            ("\"kind\": \"clip\"", "\"kind\": \"point-coord\"", "output_rows[0]"),
            ("\"kind\": \"clip\"", "\"kind\": \"screen\"", "output_rows[0]: `component` is 3"),
            ("\"kind\": \"clip\"", "\"kind\": \"depth\"", "output_rows[0]: `component`"),
            ("\"place\": \"location\"", "\"place\": \"somewhere\"", "output_rows[5]"),
            ("\"place\": \"location\"", "\"place\": \"layer\"", "output_rows[5]"),
            ("\"location\": 3,", "", "input_rows[3]"),
            ("\"location\": 3,", "\"location\": 256,", "u8"),
            ("\"center_w\": true,", "", "center_w"),
        ],
    );
    says(
        &write(&graphics_sample(Stage::Fragment)),
        &[
            ("\"binning\": false", "\"binning\": true", "graphics.binning"),
            ("\"stage\": \"fragment\"", "\"stage\": \"vertex\"", "varyings"),
            ("\"smooth\"", "\"rough\"", "varyings[0]"),
            ("\"centroid\"", "\"corner\"", "varyings[0]"),
            ("\"kind\": \"point-coord\"", "\"kind\": \"clip\"", "varyings[3]"),
            ("\"target\": 7", "\"target\": 8", "targets[1]"),
            ("\"components\": 4", "\"components\": 5", "targets[0]"),
            ("\"components\": 4", "\"components\": 0", "targets[0]"),
        ],
    );
    let bare = Artifact { stage: Stage::Fragment, ..sample() };
    assert!(read(&write(&bare)).unwrap_err().to_string().contains("graphics: is missing"));
}

#[test]
fn unknown_versions_say_so() {
    let text = write(&sample()).replace(SCHEMA, "kempe-artifact/7");
    let e = read(&text).unwrap_err().to_string();
    assert!(e.contains("kempe-artifact/7") && e.contains(SCHEMA), "{e}");
    // Also when a later version has other keys.
    let e = read(r#"{"schema": "kempe-artifact/4", "words": 3}"#).unwrap_err().to_string();
    assert!(e.contains("kempe-artifact/4"), "{e}");
    assert!(read("{}").unwrap_err().to_string().contains("no `schema`"));
    assert!(read(r#"{"schema": "kempe/1"}"#).unwrap_err().to_string().contains("kempe/1"));
}

/// One change of the text, and what the message must name.
#[test]
fn impossible_values_are_refused() {
    let text = write(&sample());
    for (from, to, says) in [
        ("\"v3d71\"", "\"v9\"", "target"),
        ("\"0x3c003186bb800000\"", "\"0x3c003186bb80000\"", "code[0]"),
        ("\"0x3c003186bb800000\"", "\"3c003186bb800000\"", "code[0]"),
        ("\"0x3c003186bb800000\"", "\"0x+c003186bb800000\"", "code[0]"),
        ("\"0xdeadbeef\"", "\"0xdeadbeef0\"", "uniforms[12]"),
        ("\"value\": \"0xdeadbeef\"", "\"axis\": 1", "uniforms[12]"),
        ("\"resource\": 1", "\"resource\": 6", "uniforms[0]"),
        ("\"resource\": 1,", "", "uniforms[0]"),
        ("\"layers\"", "\"leaves\"", "uniforms[11]"),
        ("\"size\": \"layers\",", "", "uniforms[11]"),
        ("\"rgba8\"", "\"rgba9\"", "resources[4]"),
        ("\"kind\": \"other\"", "\"kind\": \"image\"", "resources[3]"),
        ("\"dimension\": \"2d\"", "\"dimension\": \"4d\"", "resources[4]"),
        ("\"axis\": 2", "\"axis\": 3", "uniforms[6]"),
        ("\"axis\": 2", "\"axis\": 999", "u8"),
        ("\"offset\": 12", "\"offset\": -12", "u32"),
        ("\"0001abff\"", "\"0001abf\"", "constant_data"),
        ("\"0001abff\"", "\"0001abfg\"", "constant_data"),
        ("\"threads\": 4", "\"threads\": 4, \"extra\": 0", "extra"),
        ("\"attempts\": 2", "\"attempt\": 2", "attempt"),
        ("64,\n    2", "64,\n    0", "workgroup_size"),
        ("64,\n    2", "4294967295,\n    4294967295", "workgroup_size"),
    ] {
        assert!(text.contains(from), "{from}");
        let e = read(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(e.contains(says), "{from} -> {to}: {e}");
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    for artifact in [sample(), graphics_sample(Stage::Vertex), graphics_sample(Stage::Fragment)] {
        no_panic(&write(&artifact));
    }
    assert!(read(&"[".repeat(100_000)).is_err());
    assert!(read(&"{\"a\":".repeat(100_000)).is_err());
}

fn no_panic(text: &str) {
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        assert!(read(&text[..end]).is_err() || text[end..].trim().is_empty(), "cut at {end}");
    }
    let mut state = 1u64;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let pieces = ["0", "-1", "1e99", "null", "[]", "{}", "\"\"", "\"0x\"", "18446744073709551616", "true"];
    for _ in 0..3000 {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => drop(bytes.drain(at..(at + random(40)).min(bytes.len()))),
                _ => drop(bytes.splice(at..at, pieces[random(pieces.len())].bytes())),
            }
        }
        // Only that it returns: a change inside a name is still an artifact.
        let _ = read(&String::from_utf8_lossy(&bytes));
    }
}
