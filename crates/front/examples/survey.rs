//! Reads every `.spv`, `.comp` and `.wgsl` below the given folders and counts what converts, what does not and why, and the time.
//!
//! `cargo run --release -p kempe-front --no-default-features --example survey -- DIR... [--filter TEXT] [--list]`

use kempe_front::{Language, Options, compile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn collect(dir: &Path, out: &mut Vec<PathBuf>) {
    if dir.is_file() {
        out.push(dir.to_owned());
        return;
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for e in entries.flatten() {
        let path = e.path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|x| x == "spv" || x == "comp" || x == "wgsl") {
            out.push(path);
        }
    }
}

fn main() {
    let mut filter = ".comp".to_owned();
    let (mut dirs, mut list) = (Vec::new(), false);
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        match a.as_str() {
            "--filter" => filter = args.next().unwrap_or_default(),
            "--list" => list = true,
            _ => dirs.push(PathBuf::from(a)),
        }
    }
    let mut files = Vec::new();
    for d in &dirs {
        collect(d, &mut files);
    }
    files.retain(|f| f.to_string_lossy().contains(&filter));
    files.sort();
    let (mut ok, mut panics, mut invalid, mut verify_time) = (0, 0, 0, 0.0);
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut times = Vec::new();
    let (mut insts, mut blocks, mut most) = (0usize, 0usize, (0usize, String::new()));
    std::panic::set_hook(Box::new(|_| {}));
    for f in &files {
        let Ok(bytes) = std::fs::read(f) else { continue };
        let name = f.to_string_lossy().into_owned();
        let language = match f.extension().and_then(|x| x.to_str()) {
            Some("comp") => Language::Glsl,
            Some("wgsl") => Language::Wgsl,
            _ => Language::Spirv,
        };
        let start = Instant::now();
        let result = std::panic::catch_unwind(|| compile(&name, &bytes, language, &Options::default()));
        let time = start.elapsed().as_secs_f64() * 1e3;
        match result {
            Err(_) => {
                panics += 1;
                println!("PANIC {name}");
            }
            Ok(Ok(modules)) => {
                ok += 1;
                times.push((time, name.clone()));
                for m in &modules {
                    let start = Instant::now();
                    if let Err(e) = kempe_ir::verify::verify(m) {
                        println!("INVALID {name}: {}", e[0]);
                        invalid += 1;
                    }
                    verify_time += start.elapsed().as_secs_f64() * 1e3;
                    let n: usize = m.func.layout.iter().map(|b| m.func.blocks[*b].insts.len()).sum();
                    insts += n;
                    blocks += m.func.layout.len();
                    if n > most.0 {
                        most = (n, name.clone());
                    }
                }
            }
            Ok(Err(d)) => {
                let text = d.0[0].message.split(" (SPIR-V word").next().unwrap_or_default().to_owned();
                let text = text.split([':', '`']).next().unwrap_or_default().to_owned();
                reasons.entry(text).or_default().push(format!("{name}: {}", d.0[0].message));
            }
        }
    }
    println!(
        "{ok} of {} converted, {panics} panics, {invalid} invalid, {insts} instructions, {blocks} blocks",
        files.len()
    );
    println!("largest: {} instructions, {}", most.0, most.1);
    for (reason, names) in &reasons {
        println!("{:6}  {reason}", names.len());
        for n in names.iter().take(if list { usize::MAX } else { 2 }) {
            println!("          {n}");
        }
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some(last) = times.last() {
        println!("verifier: {verify_time:.1} ms in all");
        println!("time: median {:.3} ms, most {:.3} ms ({})", times[times.len() / 2].0, last.0, last.1);
    }
}
