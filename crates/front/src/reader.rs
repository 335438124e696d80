//! Reads the words of a SPIR-V module without copying them: header, instructions, literals.
//!
//! Source: SPIR-V specification, section 2.3 (physical layout). Every access is checked; whatever is wrong comes
//! back as an [`Error`] with the number of the word.

use std::borrow::Cow;

/// What is wrong with a module, and where.
#[derive(Clone, Debug)]
pub struct Error {
    /// Number of the word, from the start of the module.
    pub at: usize,
    pub message: String,
    pub help: String,
}

/// Errors are boxed: results stay small, errors are rare.
pub type Res<T> = Result<T, Box<Error>>;

#[cold]
pub fn error<T>(at: usize, message: impl Into<String>) -> Res<T> {
    Err(Box::new(Error { at, message: message.into(), help: String::new() }))
}

#[cold]
pub fn error_help<T>(at: usize, message: impl Into<String>, help: impl Into<String>) -> Res<T> {
    Err(Box::new(Error { at, message: message.into(), help: help.into() }))
}

const MAGIC: u32 = 0x0723_0203;
/// The universal limit of the specification (section 2.17) for the bound of ids.
const MAX_BOUND: u32 = 4_194_303;
/// Modules beyond this are refused: 64 MB.
const MAX_WORDS: usize = 16 << 20;

/// The bytes of a module as words in the byte order of this machine: borrowed where they already are.
pub fn words(bytes: &[u8]) -> Res<Cow<'_, [u32]>> {
    if bytes.len() < 20 {
        return error(0, format!("not a SPIR-V module: {} bytes, the header alone has 20", bytes.len()));
    }
    if !bytes.len().is_multiple_of(4) {
        let n = bytes.len();
        return error(n / 4, format!("not a SPIR-V module: {n} bytes are no whole number of words"));
    }
    let first = [bytes[0], bytes[1], bytes[2], bytes[3]];
    let swap = if u32::from_ne_bytes(first) == MAGIC {
        false
    } else if u32::from_ne_bytes(first).swap_bytes() == MAGIC {
        true
    } else {
        return error(0, "not a SPIR-V module: wrong magic number");
    };
    // SAFETY: every bit pattern is a valid u32, and `align_to` returns a correctly aligned middle part.
    let (head, middle, tail) = unsafe { bytes.align_to::<u32>() };
    if !swap && head.is_empty() && tail.is_empty() {
        return Ok(Cow::Borrowed(middle));
    }
    let word = |c: &[u8]| {
        let w = u32::from_ne_bytes([c[0], c[1], c[2], c[3]]);
        if swap { w.swap_bytes() } else { w }
    };
    Ok(Cow::Owned(bytes.chunks_exact(4).map(word).collect()))
}

/// The header of a module.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// All ids are smaller.
    pub bound: u32,
}

pub fn header(words: &[u32]) -> Res<Header> {
    let &[magic, version, _, bound, schema, ..] = words else {
        return error(words.len(), "the module ends inside its header");
    };
    if magic != MAGIC {
        return error(0, "not a SPIR-V module: wrong magic number");
    }
    if words.len() > MAX_WORDS {
        return error(0, format!("the module has {} words; more than {MAX_WORDS} are refused", words.len()));
    }
    let (major, minor) = ((version >> 16) as u8, (version >> 8) as u8);
    if version & 0xff00_00ff != 0 || major != 1 || minor > 6 {
        return error(
            1,
            format!("SPIR-V version {major}.{minor} (0x{version:08x}) is not supported: 1.0 to 1.6 are"),
        );
    }
    if bound == 0 || bound > MAX_BOUND {
        return error(3, format!("the bound of ids is {bound}; it must be 1 to {MAX_BOUND}"));
    }
    if schema != 0 {
        return error(4, format!("unknown instruction schema {schema}"));
    }
    Ok(Header { bound })
}

/// One instruction: its words, the first holding length and opcode.
#[derive(Clone, Copy, Debug)]
pub struct Inst<'a> {
    pub op: u16,
    pub words: &'a [u32],
    /// Number of its first word.
    pub at: usize,
}

impl<'a> Inst<'a> {
    /// Operand word `i`, counted from 1.
    #[inline]
    pub fn w(&self, i: usize) -> Res<u32> {
        match self.words.get(i) {
            Some(&w) => Ok(w),
            None => self.short(),
        }
    }

    #[cold]
    fn short<T>(&self) -> Res<T> {
        error(self.at, format!("{} is too short: {} words", op_name(self.op), self.words.len()))
    }

    /// The words from operand `i` on (empty if there are none).
    #[inline]
    pub fn rest(&self, i: usize) -> &'a [u32] {
        self.words.get(i..).unwrap_or(&[])
    }

    /// A literal string that starts at operand `i`, and the number of the operand behind it.
    pub fn string(&self, i: usize) -> Res<(String, usize)> {
        let mut bytes = Vec::new();
        for (n, &w) in self.rest(i).iter().enumerate() {
            for b in w.to_le_bytes() {
                if b == 0 {
                    return Ok((String::from_utf8_lossy(&bytes).into_owned(), i + n + 1));
                }
                bytes.push(b);
            }
        }
        error(self.at, format!("{}: the string has no end", op_name(self.op)))
    }
}

/// The instruction at word `at`, which must be less than the number of words.
#[inline]
pub fn inst(words: &[u32], at: usize) -> Res<Inst<'_>> {
    let first = words[at];
    let len = (first >> 16) as usize;
    if len == 0 {
        return error(at, "an instruction of length 0");
    }
    match words.get(at..at + len) {
        Some(w) => Ok(Inst { op: first as u16, words: w, at }),
        None => error(
            at,
            format!(
                "the module ends inside an instruction: {} has {len} words, {} are left",
                op_name(first as u16),
                words.len() - at
            ),
        ),
    }
}

/// The name of an opcode for messages.
pub fn op_name(op: u16) -> String {
    match spirv::Op::from_u32(op as u32) {
        Some(op) => format!("Op{op:?}"),
        None => format!("opcode {op}"),
    }
}
