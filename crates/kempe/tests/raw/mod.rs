//! Raw programs written by hand: machine code as text, the memory that it runs on, and what must come out, computed
//! here in plain Rust. Both the library and the command run all of them.

pub mod alu;
pub mod control;
pub mod kernels;
pub mod memory;
pub mod numbers;
pub mod threads;

/// Where the pieces lie.
pub const CODE: u32 = 0x40000;
pub const OTHER_CODE: u32 = 0x44000;
const UNIFORMS: u32 = 0x48000;
const ARRAYS: u32 = 0x50000;

/// A word of the uniform stream.
#[derive(Clone, Debug)]
pub enum Uniform {
    Word(u32),
    /// The address of an array, and bytes behind it.
    Array(&'static str, u32),
    /// The address of a word of the stream itself.
    Stream(u32),
}

pub use Uniform::{Array, Stream, Word};

/// What an array must hold at the end.
#[derive(Clone, Debug)]
pub struct Expected {
    pub array: &'static str,
    pub dtype: &'static str,
    pub bytes: Vec<u8>,
    /// Relative and absolute tolerance; `None`: equal bytes.
    pub tolerance: Option<(f64, f64)>,
    /// One entry per element: compare it.
    pub mask: Option<Vec<bool>>,
}

/// One program with its run.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub target: &'static str,
    pub text: String,
    /// A second piece of program at [`OTHER_CODE`].
    pub other_text: String,
    pub uniforms: Vec<Uniform>,
    pub arrays: Vec<(&'static str, Vec<u8>)>,
    pub expected: Vec<Expected>,
    pub batches: u32,
    pub batches_per_supergroup: u32,
    pub size: [u32; 3],
    pub count: [u32; 3],
    pub wgs_per_supergroup: u32,
    pub four_threads: bool,
    pub strict: bool,
    pub uniform_branch_lane: Option<u8>,
}

pub const TARGETS: [&str; 2] = ["v3d42", "v3d71"];

/// A row of lanes.
pub type Row = [u32; 16];

pub fn row(f: impl FnMut(usize) -> u32) -> Row {
    std::array::from_fn(f)
}

pub fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Pseudo-random words (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as u32
    }

    pub fn row(&mut self) -> Row {
        row(|_| self.word())
    }
}

/// rf10 and rf11: the words of the lanes in the arrays that the first two uniforms name; rf12 = 4 * lane; rf13 = 64.
pub const BEGIN: &str = "nop; nop; ldunifrf.rf10\n nop; nop; ldunifrf.rf11\n eidx rf12\n shl rf12, rf12, 2\n \
    add rf10, rf10, rf12\n add rf11, rf11, rf12\n nop; mov rf13, 4\n shl rf13, rf13, 4\n";

/// Waits for the stores and ends the program.
pub const FINISH: &str =
    "tmuwt -\n nop; nop; thrsw\n nop; nop; thrsw\n nop\n nop\n nop; nop; thrsw\n nop\n nop\n";

pub const SWITCH: &str = "nop; nop; thrsw\n nop\n nop\n";

/// The next row of the input array.
pub fn load(register: &str) -> String {
    format!("nop; mov tmua, rf10; thrsw\n add rf10, rf10, rf13\n nop\n nop; nop; ldtmu.{register}\n")
}

/// The next row of the output array.
pub fn store(register: &str) -> String {
    format!("nop; mov tmud, {register}\n nop; mov tmua, rf11\n add rf11, rf11, rf13\n")
}

impl Case {
    /// A single batch.
    pub fn new(name: &str, target: &'static str, text: String) -> Case {
        Case {
            name: format!("{name}-{target}"),
            target,
            text,
            other_text: String::new(),
            uniforms: Vec::new(),
            arrays: Vec::new(),
            expected: Vec::new(),
            batches: 1,
            batches_per_supergroup: 1,
            size: [16, 1, 1],
            count: [1, 1, 1],
            wgs_per_supergroup: 1,
            four_threads: false,
            strict: false,
            uniform_branch_lane: None,
        }
    }

    /// Rows come in as rf20, rf21, …; what `body` stores with [`store`] must be the rows `outs`.
    pub fn rows(name: &str, target: &'static str, body: &str, ins: &[Row], outs: &[Row]) -> Case {
        let loads: String = (0..ins.len()).map(|i| load(&format!("rf{}", 20 + i))).collect();
        let mut case = Case::new(name, target, format!("{BEGIN}{loads}{body}{FINISH}"));
        case.uniforms = vec![Array("in", 0), Array("out", 0)];
        case.array("in", bytes(ins.concat()))
            .array("out", vec![0; 64 * outs.len()])
            .expect("out", bytes(outs.concat()))
    }

    pub fn array(mut self, name: &'static str, contents: Vec<u8>) -> Case {
        self.arrays.push((name, contents));
        self
    }

    /// The array must hold these words.
    pub fn expect(mut self, array: &'static str, bytes: Vec<u8>) -> Case {
        self.expected.push(Expected { array, dtype: "uint32", bytes, tolerance: None, mask: None });
        self
    }

    pub fn uniforms(mut self, more: &[Uniform]) -> Case {
        self.uniforms.extend_from_slice(more);
        self
    }

    /// Addresses of the arrays, a page apart.
    fn address(&self, name: &str) -> u32 {
        let mut at = ARRAYS;
        for (array, contents) in &self.arrays {
            if *array == name {
                return at;
            }
            at += (contents.len() as u32).next_multiple_of(4096) + 4096;
        }
        panic!("{}: there is no array {name}", self.name)
    }

    /// The description and the bytes, or what is wrong with the text.
    pub fn files(&self) -> Result<(String, Vec<u8>), String> {
        let target = kempe::target(self.target).expect("a target");
        let words = |text: &str| match target.assemble(text) {
            Ok(code) => Ok(code),
            Err(e) => Err(format!("{e}: {}", text.lines().nth(e.line - 1).unwrap_or_default())),
        };
        let mut file = Vec::new();
        let mut put = |contents: &[u8]| {
            let offset = file.len();
            file.extend_from_slice(contents);
            offset
        };
        let code = words(&self.text)?;
        let mut other_code = Vec::new();
        if !self.other_text.is_empty() {
            let other = words(&self.other_text)?;
            other_code.push(serde_json::json!({
                "address": OTHER_CODE, "offset": put(&other), "length": other.len()
            }));
        }
        let uniforms = bytes(self.uniforms.iter().map(|u| match *u {
            Word(word) => word,
            Array(name, offset) => self.address(name) + offset,
            Stream(word) => UNIFORMS + 4 * word,
        }));
        let mut memory = vec![serde_json::json!({
            "name": "uniforms", "address": UNIFORMS, "offset": put(&uniforms), "length": uniforms.len(),
            "dtype": "uint32", "shape": [uniforms.len() / 4]
        })];
        for (name, contents) in &self.arrays {
            memory.push(serde_json::json!({
                "name": name, "address": self.address(name), "offset": put(contents), "length": contents.len(),
                "dtype": "uint8", "shape": [contents.len()]
            }));
        }
        let mut expected = Vec::new();
        for e in &self.expected {
            let before = self.arrays.iter().find(|(name, _)| *name == e.array).map(|(_, contents)| contents);
            let mut region = serde_json::json!({
                "name": e.array, "address": self.address(e.array), "offset": put(&e.bytes), "length": e.bytes.len(),
                "dtype": e.dtype, "compare": if e.tolerance.is_some() { "rtol" } else { "exact" },
                "changed": before != Some(&e.bytes)
            });
            if let Some((relative, absolute)) = e.tolerance {
                region["rtol"] = relative.into();
                region["atol"] = absolute.into();
            }
            if let Some(mask) = &e.mask {
                let mask: Vec<u8> = mask.iter().map(|&m| m.into()).collect();
                region["mask_offset"] = put(&mask).into();
            }
            expected.push(region);
        }
        let mut json = serde_json::json!({
            "target": self.target,
            "code": {"address": CODE, "offset": put(&code), "length": code.len()},
            "other_code": other_code,
            "code_address": CODE,
            "uniforms_address": UNIFORMS,
            "memory": memory,
            "dispatch": {
                "batches": self.batches, "workgroup_size": self.size, "workgroup_count": self.count,
                "wgs_per_supergroup": self.wgs_per_supergroup,
                "batches_per_supergroup": self.batches_per_supergroup, "four_threads": self.four_threads
            },
            "expected": expected
        });
        if self.strict {
            json["strict_switch"] = true.into();
        }
        if let Some(lane) = self.uniform_branch_lane {
            json["uniform_branch_lane"] = lane.into();
        }
        Ok((json.to_string(), file))
    }
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for target in TARGETS {
        all.extend(alu::cases(target));
        all.extend(numbers::cases(target));
        all.extend(control::cases(target));
        all.extend(memory::cases(target));
        all.extend(threads::cases(target));
        all.extend(kernels::cases(target));
    }
    all
}
