//! Hand-written texel accesses: what they give, and what stops them, each beside a neighbour that runs.

use super::*;
use crate::asm::assemble;
use kempe_ir::ImageInfo;
use kempe_ir::image::{Dim, Format, ImageDesc};

const END: &str = "nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop\n nop; nop; thrsw\n nop\n nop\n";
/// rf11 = lane, rf12 = 0, rf13 = 1.
const HEAD: &str = "eidx rf11; nop\n sub rf12, rf11, rf11; nop\n add rf13, rf12, 1; nop\n";
const STATE: u32 = 0xffff_0040;

struct Access {
    format: Format,
    size: [u32; 2],
    threads: u32,
    uniforms: Vec<u32>,
}

/// A 2D image of 16 x 2 texels.
fn access(format: Format, uniforms: &[u32]) -> Access {
    Access { format, size: [16, 2], threads: 2, uniforms: uniforms.to_vec() }
}

impl Access {
    /// Runs on both versions; the bytes of the image afterwards, which start as their own numbers.
    fn go(&self, text: &str) -> Result<Vec<u8>, Fault> {
        let mut out = None;
        for version in Version::ALL {
            let words = assemble(version, &format!("{HEAD}{text}{END}")).unwrap_or_else(|e| panic!("{e}"));
            let info = ImageInfo {
                dim: Dim::D2,
                arrayed: false,
                multisampled: false,
                depth: false,
                component: self.format.component(),
                format: None,
            };
            let desc = ImageDesc::new(&info, self.format, &self.size);
            let mut memory = Memory::new();
            let bytes = (0..desc.bytes()).map(|b| b as u8).collect();
            let base = memory.place("image", bytes, true).unwrap();
            let name = "image".to_owned();
            let image = PlacedImage { set: 0, binding: 0, element: 0, name, desc, base, state: STATE };
            let program = Program::new(version, words, self.uniforms.clone(), self.threads, [16, 1, 1]);
            let mut dispatch = Dispatch::new([1, 1, 1]);
            dispatch.images.push(image);
            run(&program, &dispatch, &mut memory, &Options::default()).result?;
            let region = memory.region_at(base).unwrap();
            let got = memory.bytes(region).to_vec();
            assert!(out.is_none_or(|o| o == got));
            out = Some(got);
        }
        Ok(out.unwrap())
    }

    #[track_caller]
    fn stops(&self, text: &str, rule: &str) {
        match self.go(text) {
            Err(fault) => assert_eq!(fault.rule, rule, "{fault}"),
            Ok(_) => panic!("nothing stops it"),
        }
    }
}

const STORE: &str = "nop; nop; wrtmuc
 add tmut, rf13, rf12; nop
 add tmud, rf11, rf13; nop
 add tmusf, rf11, rf12; nop
 tmuwt -; nop
";

const LOAD: &str = "nop; nop; wrtmuc
 nop; nop; wrtmuc
 add tmut, rf13, rf12; nop
 add tmusf, rf11, rf12; nop
 nop; nop; thrsw
 nop
 nop
 nop; nop; ldtmu.rf5
";

#[test]
fn stores() {
    let a = access(Format::R8ui, &[STATE]);
    let got = a.go(STORE).unwrap();
    assert!((0..16).all(|k| got[16 + k] == k as u8 + 1 && got[k] == k as u8));
    a.stops(&STORE.replace("tmut", "tmur"), "54");
    a.stops(&STORE.replace(" add tmud, rf11, rf13; nop\n", ""), "56");
    a.stops(&STORE.replace("add tmut, rf13, rf12; nop", "nop"), "54");
    a.stops(&STORE.replace("add tmut", "add tmui, rf12, rf12; nop\n add tmut"), "54");
    a.stops(&STORE.replace("add tmud, rf11", "add tmud, rf12, rf12; nop\n add tmud, rf11"), "54");
    a.stops(&STORE.replacen("nop; nop; wrtmuc\n", "", 1), "54");
    a.stops(&STORE.replace("add tmud", "nop; nop; thrsw\n nop\n nop\n add tmud"), "54");
    a.stops(&STORE.replace("wrtmuc\n", "wrtmuc\n nop; nop; thrsw\n nop\n nop\n"), "54");
    a.stops(&STORE.replace("tmusf, rf11", "tmua, rf11"), "54");
    a.stops(&STORE.replace("rf11, rf13", "rf20, rf13"), "undefined");
    a.stops(&STORE.replace("tmut, rf13", "tmut, rf20"), "undefined");
    access(Format::R8ui, &[STATE + 16]).stops(STORE, "memory");
    access(Format::R8ui, &[STATE | 1]).stops(STORE, "54");
    // Outside of the image nothing happens.
    let narrow = Access { size: [5, 2], ..access(Format::R8ui, &[STATE]) };
    assert_eq!(narrow.go(STORE).unwrap(), [0, 1, 2, 3, 4, 1, 2, 3, 4, 5]);
}

#[test]
fn loads_and_queues() {
    let store_back = "nop; nop; wrtmuc\n add tmut, rf12, rf12; nop\n add tmud, rf5, rf12; nop\n add tmusf, rf11, rf12; nop\n tmuwt -; nop\n";
    let text = format!("{LOAD}{store_back}");
    let a = access(Format::R8ui, &[STATE | 1, 5, STATE]);
    let got = a.go(&text).unwrap();
    assert_eq!(got[..16], got[16..]);
    // 16-bit results come in pairs: the missing green is 0.
    assert!(access(Format::R8ui, &[STATE | 1, 4, STATE]).go(&text).unwrap() == got);
    access(Format::R8ui, &[STATE, 5, STATE]).stops(&text, "56");
    access(Format::R8ui, &[STATE | 4, 4, STATE]).stops(&text, "56");
    access(Format::R8ui, &[STATE | 3, 5, STATE]).stops(&text, "56");
    access(Format::R8ui, &[STATE | 1, 7, STATE]).stops(&text, "unsupported");
    // A texel outside of the image, and one that was stored and not waited for.
    Access { size: [5, 2], ..a }.stops(&text, "memory");
    let again = format!("{}{LOAD}", STORE.replace(" tmuwt -; nop\n", ""));
    access(Format::R8ui, &[STATE, STATE | 1, 5]).stops(&again, "12.2");
    assert!(access(Format::R8ui, &[STATE, STATE | 1, 5]).go(&format!("{STORE}{LOAD}")).is_ok());
    // Register writes: 2 coordinates and 2 or 4 words, with a share of 4 or 8.
    let words =
        |n: usize| STORE.replace("add tmud, rf11, rf13; nop", &"add tmud, rf11, rf13; nop\n".repeat(n));
    let four = Access { threads: 4, ..access(Format::Rgba16ui, &[STATE]) };
    assert!(four.go(&words(2)).is_ok());
    let large = access(Format::Rgba32ui, &[STATE]);
    assert!(large.go(&words(4)).is_ok());
    Access { threads: 4, ..large }.stops(&words(4), "55");
}

#[test]
fn atomics() {
    let text = LOAD
        .replacen("nop; nop; wrtmuc\n", "nop; nop; wrtmuc\n nop; nop; wrtmuc\n", 1)
        .replace("add tmusf", "add tmud, rf13, rf12; nop\n add tmusf");
    let before: Vec<u8> = (0..128).collect();
    let word = |b: &[u8], k: usize| u32::from_le_bytes([b[4 * k], b[4 * k + 1], b[4 * k + 2], b[4 * k + 3]]);
    let got = access(Format::R32ui, &[STATE | 1, 5, 0]).go(&text).unwrap();
    assert!((16..32).all(|k| word(&got, k) == word(&before, k) + 1));
    assert_eq!(got[..64], before[..64]);
    access(Format::R32ui, &[STATE, 5, 0]).stops(&text, "57");
    access(Format::R32ui, &[STATE | 1, 5, 11 << 20]).stops(&text, "54");
    access(Format::R32ui, &[STATE | 1, 5, 3 << 20]).stops(&text, "54");
    access(Format::R8ui, &[STATE | 1, 5, 0]).stops(&text, "54");
    // Without its data it is not an atomic, and its word is not collected.
    access(Format::R32ui, &[STATE | 1, 5, 0]).stops(&text.replace("; ldtmu.rf5", ""), "57");
}
