//! What a module needs, read from its words; and its contents without names and lines.

use crate::client::sha256;
use spirv::{Capability, Op};
use std::collections::BTreeSet;

/// First word of every module.
const MAGIC: u32 = 0x0723_0203;

fn words(bytes: &[u8]) -> Option<Vec<u32>> {
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
    (words.first() == Some(&MAGIC) && words.len() >= 5 && bytes.len().is_multiple_of(4)).then_some(words)
}

/// Instructions: opcode and all words.
fn instructions(words: &[u32]) -> impl Iterator<Item = (u16, &[u32])> {
    let mut at = 5;
    std::iter::from_fn(move || {
        let first = *words.get(at)?;
        let len = (first >> 16) as usize;
        let inst = words.get(at..at.checked_add(len.max(1))?)?;
        at += len.max(1);
        Some((first as u16, inst))
    })
}

/// Checksum of a module without names, sources, lines and the number of the tool that made it.
pub fn bare(bytes: &[u8]) -> Option<String> {
    const LEFT_OUT: [Op; 10] = [
        Op::Source,
        Op::SourceContinued,
        Op::SourceExtension,
        Op::Name,
        Op::MemberName,
        Op::String,
        Op::Line,
        Op::NoLine,
        Op::ModuleProcessed,
        Op::Nop,
    ];
    let words = words(bytes)?;
    let mut out = vec![words[0], words[1], words[3], words[4]];
    for (op, inst) in instructions(&words) {
        if !LEFT_OUT.iter().any(|o| *o as u16 == op) {
            out.extend_from_slice(inst);
        }
    }
    Some(sha256(&out.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>()))
}

const CAPABILITIES: [(Capability, &str); 9] = [
    (Capability::Int8, "int8"),
    (Capability::Int16, "int16"),
    (Capability::Int64, "int64"),
    (Capability::Int64Atomics, "int64atomic"),
    (Capability::Float16, "f16"),
    (Capability::Float64, "f64"),
    (Capability::PhysicalStorageBufferAddresses, "physptr"),
    (Capability::Tessellation, "tessellation"),
    (Capability::Geometry, "geometry"),
];

/// Colour outputs from which on a module has many.
const MANY_TARGETS: usize = 5;

/// What a module needs, as the manifest says it: names separated by commas.
pub fn features(bytes: &[u8]) -> String {
    let Some(words) = words(bytes) else { return String::new() };
    let (mut found, mut entries, mut fragment) = (BTreeSet::new(), 0, false);
    let (mut outputs, mut located) = (BTreeSet::new(), BTreeSet::new());
    for (op, inst) in instructions(&words) {
        let word = |n: usize| inst.get(n).copied().unwrap_or(u32::MAX);
        match op {
            _ if op == Op::Capability as u16 => {
                found.extend(CAPABILITIES.iter().filter(|c| c.0 as u32 == word(1)).map(|c| c.1));
            }
            _ if op == Op::EntryPoint as u16 => {
                entries += 1;
                fragment |= word(1) == spirv::ExecutionModel::Fragment as u32;
            }
            // Sampled: 1 is through a sampler, 2 is storage.
            _ if op == Op::TypeImage as u16 => {
                found.extend([(1, "texture"), (2, "image")].iter().filter(|s| s.0 == word(7)).map(|s| s.1));
            }
            _ if (Op::GroupNonUniformElect as u16..=Op::GroupNonUniformQuadSwap as u16).contains(&op) => {
                found.insert("subgroup");
            }
            _ if op == Op::Decorate as u16 && word(2) == spirv::Decoration::Location as u32 => {
                located.insert(word(1));
            }
            _ if op == Op::Variable as u16 && word(3) == spirv::StorageClass::Output as u32 => {
                outputs.insert(word(2));
            }
            _ => {}
        }
    }
    if fragment && outputs.intersection(&located).count() >= MANY_TARGETS {
        found.insert("many-targets");
    }
    if entries == 0 {
        found.insert("no-entry");
    }
    found.into_iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn names_do_not_count() {
        let head = [MAGIC, 0x10000, 7, 9, 0];
        let capability = [2 << 16 | Op::Capability as u32, Capability::Float64 as u32];
        let name = [3 << 16 | Op::Name as u32, 1, 0x61];
        let plain = bytes(&[&head[..], &capability].concat());
        let mut named = bytes(&[&head[..], &capability, &name].concat());
        named[8] = 99;
        assert_eq!(bare(&plain), bare(&named));
        assert!(bare(&plain).is_some() && bare(&bytes(&head)) != bare(&plain));
        assert_eq!(features(&plain), "f64,no-entry");
        assert_eq!((bare(b"abcd"), features(&[1, 2, 3])), (None, String::new()));
        // A length of 0, and one beyond the end.
        for word in [0u32, 0xffff_0011] {
            assert_eq!(features(&bytes(&[&head[..], &[word]].concat())), "no-entry");
        }
    }
}
