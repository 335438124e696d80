//! General memory access: widths, vectors, lanes, the configuration register, atomics.

use super::*;

pub fn cases(target: &'static str) -> Vec<Case> {
    let mut all = vec![
        narrow(target),
        gather_and_scatter(target),
        masked_stores(target),
        quads(target),
        configuration(target),
        prefetch(target),
        undefined_but_not_compared(target),
        exchange_atomics(target),
        compare_and_exchange(target),
        same_word(target),
    ];
    for n in 2..=4 {
        all.push(vectors(target, n));
    }
    all.push(shifted_vectors(target));
    all
}

/// Loads of 8 and 16 bits with and without sign, and stores of them.
fn narrow(target: &'static str) -> Case {
    let mut r = Random(21);
    let a = r.row();
    // rf12 is 4 * lane; bytes at 3 * lane, halves at 2 * lane.
    let mut body = "sub rf14, rf10, rf12\n sub rf14, rf14, rf13\n eidx rf15\n shl rf16, rf15, 1\n add rf17, rf16, rf15\n add rf17, rf17, rf14\n add rf16, rf16, rf14\n".to_owned();
    let byte = |ty: u32| Word(0xffff_ff00 | 0x80 | 15 << 3 | ty);
    let mut uniforms = Vec::new();
    for (ty, at) in [(0, "rf17"), (5, "rf17"), (1, "rf16"), (6, "rf16")] {
        body += &format!("nop; mov tmuau, {at}\n nop; nop; ldtmu.rf5\n{}", store("rf5"));
        uniforms.push(byte(ty));
    }
    // Stores into a row of their own: bytes at lane, then halves at 16 + 2 * lane.
    body += "sub rf18, rf11, rf12\n add rf18, rf18, rf15\n nop; mov tmud, rf20\n nop; mov tmuau, rf18\n \
             add rf18, rf18, 8\n add rf18, rf18, 8\n add rf18, rf18, rf15\n nop; mov tmud, rf20\n nop; mov tmuau, rf18\n";
    uniforms.extend([byte(5), byte(6)]);
    let memory = bytes(a);
    let half = |at: usize| u16::from_le_bytes([memory[at], memory[at + 1]]);
    let mut out = bytes(
        [
            row(|i| memory[3 * i] as i8 as u32),
            row(|i| memory[3 * i].into()),
            row(|i| half(2 * i) as i16 as u32),
            row(|i| half(2 * i).into()),
        ]
        .concat(),
    );
    out.extend(a.iter().map(|&x| x as u8));
    out.extend(a.iter().flat_map(|&x| (x as u16).to_le_bytes()));
    out.extend([0; 16]);
    let mut case = Case::rows("narrow", target, &body, &[a], &[[0; 16]; 5]).uniforms(&uniforms);
    case.expected[0].bytes = out;
    case
}

/// n words per lane, loaded and stored at once.
fn vectors(target: &'static str, n: usize) -> Case {
    let collect: String = (0..n).map(|k| format!("nop; nop; ldtmu.rf{}\n", 20 + k)).collect();
    let change: String = (0..n).map(|k| format!("add rf{0}, rf{0}, {1}\n", 20 + k, k + 1)).collect();
    let data: String = (0..n).map(|k| format!("nop; mov tmud, rf{}\n", 20 + k)).collect();
    // 16 bytes per lane.
    let text = format!(
        "{BEGIN} add rf10, rf10, rf12\n add rf10, rf10, rf12\n add rf10, rf10, rf12\n add rf11, rf11, rf12\n add rf11, rf11, rf12\n \
         add rf11, rf11, rf12\n nop; mov tmuau, rf10; thrsw\n nop\n nop\n {collect}{change}{data} nop; mov tmuau, rf11\n{FINISH}"
    );
    let mut case = Case::new(&format!("vector-{n}"), target, text);
    let config = Word(0xffff_ff00 | 0x80 | 15 << 3 | n as u32);
    case.uniforms = vec![Array("in", 0), Array("out", 0), config.clone(), config];
    let a: Vec<u32> = (0..64).map(|i| 1000 * i).collect();
    let out = (0..64).map(|i| if i % 4 < n { a[i] + (i % 4) as u32 + 1 } else { 0 });
    let out: Vec<u32> = out.collect();
    case.array("in", bytes(a)).array("out", vec![0; 256]).expect("out", bytes(out))
}

/// Vectors that are not aligned: 4.2 wraps inside the 16 bytes, 7.1 goes on.
fn shifted_vectors(target: &'static str) -> Case {
    let mut body = "add rf14, rf10, rf12\n add rf14, rf14, rf12\n add rf14, rf14, rf12\n".to_owned();
    let mut outs = Vec::new();
    let mut uniforms = Vec::new();
    let word = |lane: usize, offset: usize, k: usize| {
        let inside = if target == "v3d42" { (offset + k) % 4 } else { offset + k };
        (4 * lane + inside) as u32 * 3
    };
    for (offset, n) in [(1, 4), (2, 3), (3, 2), (1, 2), (3, 4)] {
        body += &format!("add rf15, rf14, {}\n nop; mov tmuau, rf15\n", 4 * offset);
        uniforms.push(Word(0xffff_ff00 | 0x80 | 15 << 3 | n as u32));
        for k in 0..n {
            body += &format!("nop; nop; ldtmu.rf5\n{}", store("rf5"));
            outs.push(row(|i| word(i, offset, k)));
        }
    }
    let mut case = Case::rows("shifted-vectors", target, &body, &[], &outs).uniforms(&uniforms);
    case.arrays[0].1 = bytes((0..68).map(|i| 3 * i));
    case
}

/// Any lane reads and writes any word.
fn gather_and_scatter(target: &'static str) -> Case {
    let perm = row(|i| (i as u32 * 5 + 3) % 16);
    let other = row(|i| (i as u32 * 7 + 2) % 16);
    let body = "shl rf5, rf20, 2\n sub rf6, rf10, rf12\n add rf5, rf5, rf6\n nop; mov tmua, rf5\n nop; nop; ldtmu.rf7\n \
        shl rf8, rf21, 2\n sub rf9, rf11, rf12\n add rf8, rf8, rf9\n nop; mov tmud, rf7\n nop; mov tmua, rf8\n";
    let a = row(|i| 100 + i as u32 * i as u32);
    let mut out = [0; 16];
    for i in 0..16 {
        out[other[i] as usize] = a[perm[i] as usize];
    }
    let mut case = Case::rows("gather-and-scatter", target, body, &[perm, other], &[out]);
    case.arrays[0].1.extend(bytes(a));
    case
}

/// Lanes that the condition of the address leaves out do not store, nor do lanes that do not exist.
fn masked_stores(target: &'static str) -> Case {
    let body = "nop; mov.pushz -, rf20\n nop; mov tmud, rf12\n nop; mov.ifa tmua, rf11\n add rf11, rf11, rf13\n \
        nop; mov tmud, rf12\n nop; mov.ifna tmua, rf11\n";
    let a = row(|i| (i % 3) as u32);
    let outs = [
        row(|i| if a[i] == 0 && i < 13 { 4 * i as u32 } else { 9 }),
        row(|i| if a[i] != 0 && i < 13 { 4 * i as u32 } else { 9 }),
    ];
    let mut case = Case::rows("masked-stores", target, body, &[a], &outs);
    case.size = [13, 1, 1];
    case.arrays[1].1 = bytes([9; 32]);
    case
}

/// A per-quad load serves all lanes of a quad that has one; a per-pixel load only the lanes asked for.
fn quads(target: &'static str) -> Case {
    // Only lanes 5 and 8 ask.
    let body = format!(
        "eidx rf6\n xor.pushz -, rf6, 5\n xor.pushz -, rf6, 8\n nop; mov rf7, 0\n nop; mov.ifa rf7, 1\n nop; mov.ifb rf7, 1\n \
         nop; mov.pushz -, rf7\n nop; mov.ifna tmuau, rf10\n nop; nop; ldtmu.rf5\n{}",
        store("rf5")
    );
    let a = row(|i| 700 + i as u32);
    let mut case = Case::rows("quads", target, &body, &[], &[a]).uniforms(&[Word(0xffff_ff00 | 15 << 3 | 7)]);
    case.arrays[0].1 = bytes(a);
    // Quads 1 and 2 have loaded; what the others hold is undefined, stored all the same, and not compared.
    case.expected[0].mask = Some((0..16).map(|i| (4..12).contains(&i)).collect());
    case
}

/// One word configures three operations of different width; then the register is all ones again.
fn configuration(target: &'static str) -> Case {
    // Bytes: two words, unsigned byte, four words.
    let stores: String = (24..28).map(|r| store(&format!("rf{r}"))).collect();
    let body = format!(
        "nop; nop; ldunifrf.rf6\n nop; mov tmuc, rf6\n add rf14, rf10, rf12\n add rf14, rf14, rf12\n add rf14, rf14, rf12\n \
         nop; mov tmua, rf14\n nop; nop; ldtmu.rf24\n nop; nop; ldtmu.rf25\n \
         nop; mov tmua, rf14\n nop; nop; ldtmu.rf26\n \
         nop; mov tmua, rf14\n nop; nop; ldtmu.rf27\n nop; nop; ldtmu.rf6\n nop; nop; ldtmu.rf7\n nop; nop; ldtmu.rf8\n \
         add rf27, rf27, rf8\n{stores}"
    );
    let a = |i: u32| 0x0101_0000 * i + 7 * i;
    let outs = [
        row(|i| a(4 * i as u32)),
        row(|i| a(4 * i as u32 + 1)),
        row(|i| a(4 * i as u32) & 0xff),
        row(|i| a(4 * i as u32).wrapping_add(a(4 * i as u32 + 3))),
    ];
    let word = |ty: u32| 0x80 | 15 << 3 | ty;
    let mut case = Case::rows("configuration", target, &body, &[], &outs)
        .uniforms(&[Word(word(2) | word(5) << 8 | word(4) << 16 | 0xff00_0000)]);
    case.arrays[0].1 = bytes((0..64).map(a));
    case
}

/// Operation 0 without data returns nothing.
fn prefetch(target: &'static str) -> Case {
    let body = format!("nop; mov tmuau, rf10\n nop; mov tmua, rf10\n nop; nop; ldtmu.rf5\n{}", store("rf5"));
    let a = row(|i| 70 + i as u32);
    let mut case = Case::rows("prefetch", target, &body, &[], &[a]).uniforms(&[Word(0xffff_ff80)]);
    case.arrays[0].1 = bytes(a);
    case
}

/// Registers that nothing has written are stored into elements that nobody compares.
fn undefined_but_not_compared(target: &'static str) -> Case {
    let body = format!("nop; mov.pushz -, rf20\n nop; mov.ifa rf31, rf12\n{}", store("rf31"));
    let a = row(|i| (i % 2) as u32);
    let mut case = Case::rows("undefined-but-not-compared", target, &body, &[a], &[row(|i| 4 * i as u32)]);
    case.expected[0].mask = Some((0..16).map(|i| i % 2 == 0).collect());
    case
}

type Atomic = (u32, fn(u32, u32) -> u32);

const ATOMICS: [Atomic; 10] = [
    (0, u32::wrapping_add),
    (1, u32::wrapping_sub),
    (2, |_, b| b),
    (4, u32::min),
    (5, u32::max),
    (6, |a, b| (a as i32).min(b as i32) as u32),
    (7, |a, b| (a as i32).max(b as i32) as u32),
    (8, |a, b| a & b),
    (9, |a, b| a | b),
    (10, |a, b| a ^ b),
];

/// Every operation on a word per lane: old values and new ones; the operand in tmud, on 7.1 in tmudref; then those without
/// an operand.
fn exchange_atomics(target: &'static str) -> Case {
    let mut r = Random(31);
    let b = r.row();
    let mut body = String::new();
    let mut uniforms = Vec::new();
    let (mut olds, mut news) = (Vec::new(), Vec::new());
    let config = |operation: u32| Word(0xffff_ff00 | 0x80 | operation << 3 | 7);
    let mut one = |operand: &str, operation: u32, new: &dyn Fn(u32, u32) -> u32| {
        let a = r.row();
        body.push_str(&format!(
            "{operand}nop; mov tmuau, rf10; thrsw\n add rf10, rf10, rf13\n nop\n nop; nop; ldtmu.rf5\n{}",
            store("rf5")
        ));
        uniforms.push(config(operation));
        olds.push(a);
        news.push(row(|i| new(a[i], b[i])));
    };
    for (operation, new) in ATOMICS {
        one("nop; mov tmud, rf20\n", operation, &new);
        if target == "v3d71" {
            one("nop; mov tmudref, rf20\n", operation, &new);
        }
    }
    one("", 8, &|a, _| a.wrapping_add(1));
    one("", 9, &|a, _| a.wrapping_sub(1));
    one("", 10, &|a, _| !a);
    let mut case = Case::rows("atomics", target, &body, &[b], &olds).uniforms(&uniforms);
    case.arrays[0].1.extend(bytes(olds.concat()));
    case.expect("in", bytes([vec![b], news].concat().concat()))
}

fn compare_and_exchange(target: &'static str) -> Case {
    let mut body = "nop; mov tmud, rf20\n nop; mov tmud, rf21\n nop; mov tmuau, rf10\n nop; nop; ldtmu.rf5\n"
        .to_owned()
        + &store("rf5");
    let a = row(|i| i as u32);
    let compare = row(|i| if i % 3 == 0 { i as u32 } else { 99 });
    let new = row(|i| 1000 + i as u32);
    let mut uniforms = vec![Word(0xffff_ff00 | 0x80 | 3 << 3 | 2)];
    let after = row(|i| if i % 3 == 0 { new[i] } else { a[i] });
    let mut outs = vec![a];
    if target == "v3d71" {
        // The other form finds what the first has left.
        body +=
            "nop; mov tmudref, rf21\n nop; mov tmuoff, rf20\n nop; mov tmuau, rf10\n nop; nop; ldtmu.rf5\n";
        body += &store("rf5");
        uniforms.push(Word(0xffff_ff00 | 0x80 | 3 << 3 | 7));
        outs.push(after);
    }
    let last = if target == "v3d71" { row(|i| if i % 3 == 0 { compare[i] } else { a[i] }) } else { after };
    let mut case =
        Case::rows("compare-and-exchange", target, &body, &[compare, new], &outs).uniforms(&uniforms);
    case.arrays[0].1.extend(bytes(a));
    case.expect("in", bytes([compare, new, last].concat()))
}

/// All lanes on one word: only what does not depend on their order.
fn same_word(target: &'static str) -> Case {
    let mut r = Random(41);
    let b = r.row();
    let mut body = "sub rf14, rf10, rf12\n".to_owned();
    let mut uniforms = Vec::new();
    let mut news = Vec::new();
    for (operation, new) in ATOMICS.into_iter().filter(|a| a.0 != 2) {
        body += "nop; mov tmud, rf20\n nop; mov tmuau, rf14\n nop; nop; ldtmu.rf5\n add rf14, rf14, 4\n";
        uniforms.push(Word(0xffff_ff00 | 0x80 | operation << 3 | 7));
        news.push(b.iter().fold(0x1234_5678, |a, &b| new(a, b)));
    }
    let mut case = Case::rows("same-word", target, &body, &[b], &[]).uniforms(&uniforms);
    case.expected.clear();
    case.arrays[0].1.extend(bytes(news.iter().map(|_| 0x1234_5678)));
    case.expect("in", bytes(b.into_iter().chain(news)))
}
