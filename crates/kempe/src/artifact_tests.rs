use super::*;

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
        code: vec![0x3c00_3186_bb80_0000, 1, u64::MAX],
        uniforms,
        threads: 4,
        single_section: true,
        workgroup_size: [64, 2, 1],
        shared_bytes: 256,
        scratch_bytes: 128,
        constant_data: vec![0, 1, 0xab, 0xff],
        uses_barrier: true,
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

#[test]
fn unknown_versions_say_so() {
    let text = write(&sample()).replace(SCHEMA, "kempe-artifact/7");
    let e = read(&text).unwrap_err().to_string();
    assert!(e.contains("kempe-artifact/7") && e.contains(SCHEMA), "{e}");
    // Also when a later version has other keys.
    let e = read(r#"{"schema": "kempe-artifact/3", "words": 3}"#).unwrap_err().to_string();
    assert!(e.contains("kempe-artifact/3"), "{e}");
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
    let text = write(&sample());
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
        let mut bytes = text.clone().into_bytes();
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
    assert!(read(&"[".repeat(100_000)).is_err());
    assert!(read(&"{\"a\":".repeat(100_000)).is_err());
}
