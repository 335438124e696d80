#![no_main]

#[allow(dead_code)]
#[path = "../../xtask/src/coverage/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::spirv(data));

// Half of the time whole instructions are moved about: bytes alone seldom leave a module that is read to its end.
libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mut words: Vec<u32> =
        data[..size].chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
    mutate(&mut words, seed);
    words.truncate(max_size / 4);
    for (bytes, word) in data.chunks_exact_mut(4).zip(&words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    words.len() * 4
});

/// Words before the first instruction of a module.
const HEADER: usize = 5;

/// One to three changes: a word replaced by a neighbouring number or by a word from elsewhere, an instruction dropped,
/// doubled, exchanged with another, or given another opcode.
fn mutate(words: &mut Vec<u32>, seed: u32) {
    let mut state = u64::from(seed) | 1 << 40;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % n.max(1)
    };
    for _ in 0..1 + below(3) {
        let mut starts = Vec::new();
        let mut at = HEADER;
        while at < words.len() {
            starts.push(at);
            at += (words[at] >> 16).max(1) as usize;
        }
        if starts.is_empty() {
            return;
        }
        let pick = below(starts.len());
        let range = |k: usize| starts[k]..starts.get(k + 1).copied().unwrap_or(words.len()).min(words.len());
        let r = range(pick);
        match below(8) {
            0 | 1 => {
                let at = r.start + below(r.len());
                words[at] = words[HEADER + below(words.len() - HEADER)];
            }
            2 => {
                let at = r.start + below(r.len());
                words[at] = words[at].wrapping_add(below(5) as u32).wrapping_sub(2);
            }
            3 => {
                words.drain(r);
            }
            4 => {
                let copy: Vec<u32> = words[r].to_vec();
                let to = starts[below(starts.len())];
                words.splice(to..to, copy);
            }
            5 => {
                let other = range(below(starts.len()));
                let (a, b) = (words[r.clone()].to_vec(), words[other.clone()].to_vec());
                if r.end <= other.start {
                    words.splice(other, a);
                    words.splice(r, b);
                }
            }
            6 => words[r.start] = words[r.start] & 0xffff_0000 | below(450) as u32,
            _ => {
                let at = r.start + below(r.len());
                words[at] = [0, 1, 2, 3, 4, 7, 8, 16, 32, 64, u32::MAX, 0x8000_0000][below(12)];
            }
        }
    }
}
