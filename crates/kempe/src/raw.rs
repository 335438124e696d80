//! Raw programs: machine code from elsewhere with the memory that it runs on and what must come out.
//!
//! A description (JSON) names pieces of a second file that holds the bytes. Unknown keys are ignored; everything else
//! is checked, so that no description can make a run panic or take more than [`MAX_IMAGE`] bytes.
//!
//! The simulator stops such a program at a limit of the hardware, and at an undefined value that decides what happens
//! (an address, a branch, a condition of a memory access). An undefined value that is merely stored is remembered (unless
//! a numbered rule made it so: 36, 58): it is a difference if a region that is compared holds it at the end, and nothing otherwise.

use crate::data::Element;
use crate::run::{RunError, RunOptions, RunReport};
use crate::target::{self, CodeFacts, Target};
use kempe_ir::exec::Memory;
use kempe_ir::module::Stage;
use serde::Deserialize;

/// First address of the address space in use.
const BASE: u32 = 0x40000;

/// Reads up to this far behind the last array are allowed: prefetch and lanes that are masked off. So are writes: there are
/// programs that run on the chips and store a few words behind the array of their results.
const TAIL: u64 = 4096;

/// Most bytes of the memory image.
pub const MAX_IMAGE: u64 = 1 << 30;

/// What a target runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawProgram {
    /// Words with the address of the first.
    pub code: Vec<(u32, Vec<u8>)>,
    pub entry: u32,
    pub uniforms_address: u32,
    pub batches: u32,
    pub batches_per_supergroup: u32,
    pub wgs_per_supergroup: u32,
    pub workgroup_size: [u32; 3],
    pub workgroup_count: [u32; 3],
    pub four_threads: bool,
    /// Values that a thread switch may destroy are lost.
    pub strict_switch: bool,
    pub uniform_branch_lane: Option<u8>,
}

/// A raw program, ready to run.
pub struct Raw {
    pub target: &'static dyn Target,
    program: RawProgram,
    memory: Memory,
    expected: Vec<Expected>,
}

/// What one region must hold at the end.
struct Expected {
    name: String,
    address: u32,
    bytes: Vec<u8>,
    element: Element,
    /// Allowed difference: relative to the expected value, and absolute. `None`: equal bytes.
    tolerance: Option<(f64, f64)>,
    /// One entry for each element: compare it.
    mask: Option<Vec<bool>>,
    changed: Option<bool>,
}

/// The description. A key that may be left out may also be null.
#[derive(Deserialize)]
struct Form {
    target: String,
    code: PieceForm,
    other_code: Option<Vec<PieceForm>>,
    code_address: u32,
    uniforms_address: u32,
    memory: Option<Vec<PieceForm>>,
    dispatch: DispatchForm,
    strict_switch: Option<bool>,
    uniform_branch_lane: Option<u8>,
    expected: Option<Vec<ExpectedForm>>,
}

#[derive(Deserialize)]
struct PieceForm {
    name: Option<String>,
    address: u32,
    offset: u64,
    length: u64,
}

impl PieceForm {
    fn name(&self, otherwise: &str) -> String {
        self.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| otherwise.to_owned())
    }
}

#[derive(Deserialize)]
struct DispatchForm {
    batches: u32,
    workgroup_size: [u32; 3],
    workgroup_count: [u32; 3],
    wgs_per_supergroup: u32,
    batches_per_supergroup: u32,
    four_threads: bool,
}

#[derive(Deserialize)]
struct ExpectedForm {
    #[serde(flatten)]
    piece: PieceForm,
    dtype: Option<String>,
    compare: String,
    rtol: Option<f64>,
    atol: Option<f64>,
    mask_offset: Option<u64>,
    changed: Option<bool>,
}

/// How a raw run ended that came to its end.
#[derive(Clone, PartialEq, Debug)]
pub struct RawOutcome {
    /// Counts and warnings; there are no bindings, so no buffers.
    pub report: RunReport,
    /// Regions compared.
    pub compared: usize,
    /// The first difference.
    pub difference: Option<String>,
    /// What the program left behind.
    pub memory: Memory,
}

/// What a target gives for a raw program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawRun {
    pub report: RunReport,
    /// Addresses of the bytes of memory that hold an undefined value, ascending.
    pub undefined: Vec<u32>,
}

impl Raw {
    /// Reads a description and its bytes.
    ///
    /// # Errors
    /// A message about the description.
    pub fn new(json: &str, bytes: &[u8]) -> Result<Raw, String> {
        let form: Form = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let target = target::target(&form.target)
            .ok_or_else(|| format!("target `{}` is not known", form.target.escape_debug()))?;
        let slice = |name: &str, offset: u64, length: u64| {
            let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
            range
                .and_then(|(start, length)| bytes.get(start..start.checked_add(length)?))
                .ok_or_else(|| format!("{name}: bytes {offset} to {offset}+{length} are not in the file"))
        };
        let mut code = Vec::new();
        for (i, piece) in std::iter::once(&form.code).chain(form.other_code.iter().flatten()).enumerate() {
            let name = if i == 0 { "code".to_owned() } else { format!("other_code[{}]", i - 1) };
            let bytes = slice(&name, piece.offset, piece.length)?;
            if !bytes.len().is_multiple_of(target.parcel()) {
                return Err(format!("{name}: {} bytes are no whole words", piece.length));
            }
            code.push((piece.address, bytes.to_vec()));
        }
        let memory = image(&form, &slice)?;
        let mut expected = Vec::new();
        for e in form.expected.iter().flatten() {
            expected.push(read_expected(e, &slice)?);
        }
        let d = form.dispatch;
        let program = RawProgram {
            code,
            entry: form.code_address,
            uniforms_address: form.uniforms_address,
            batches: d.batches,
            batches_per_supergroup: d.batches_per_supergroup,
            wgs_per_supergroup: d.wgs_per_supergroup,
            workgroup_size: d.workgroup_size,
            workgroup_count: d.workgroup_count,
            four_threads: d.four_threads,
            strict_switch: form.strict_switch.unwrap_or(false),
            uniform_branch_lane: form.uniform_branch_lane,
        };
        Ok(Raw { target, program, memory, expected })
    }

    /// What the rules of the target say about the text of the program, without running it: every way through it is
    /// followed, also those that this run does not take, so none of it stops the run. One line for each rule.
    pub fn findings(&self) -> Vec<String> {
        let p = &self.program;
        let parcel = self.target.parcel();
        let piece = p.code.iter().find_map(|(address, code)| {
            let offset = p.entry.checked_sub(*address)? as usize;
            let inside = offset.is_multiple_of(parcel) && offset < code.len();
            inside.then_some((*address, code, offset / parcel))
        });
        let Some((address, code, entry)) = piece else { return Vec::new() };
        let found = self.target.validate(&CodeFacts {
            code,
            threads: if p.four_threads { 4 } else { 2 },
            stage: Stage::Compute,
            single_section: false,
            entry,
            address: Some(address),
        });
        let mut rules: Vec<&str> = Vec::new();
        let mut lines = Vec::new();
        for v in &found {
            if rules.contains(&v.rule) {
                continue;
            }
            rules.push(v.rule);
            let others = found.iter().filter(|w| w.rule == v.rule).count() - 1;
            let more = if others == 0 { String::new() } else { format!(" (and {others} more)") };
            let class = if v.error { ", a limit of the hardware on some way through the text" } else { "" };
            lines.push(format!("rule {}{class}: word {}: {}{more}", v.rule, v.at, v.message));
        }
        lines
    }

    /// The code of the program, piece by piece, as counts are numbered.
    pub fn code(&self) -> Vec<u8> {
        self.program.code.iter().flat_map(|(_, code)| code.iter().copied()).collect()
    }

    /// Runs it and compares.
    ///
    /// # Errors
    /// When it cannot be run or breaks a hardware rule.
    pub fn run(self, options: &RunOptions) -> Result<RawOutcome, RunError> {
        let mut memory = self.memory.clone();
        let run = self.target.run_raw(&self.program, &mut memory, options)?;
        let difference =
            self.expected.iter().find_map(|e| e.difference(&self.memory, &memory, &run.undefined));
        Ok(RawOutcome { report: run.report, compared: self.expected.len(), difference, memory })
    }
}

type Slice<'a, 'b> = &'b dyn Fn(&str, u64, u64) -> Result<&'a [u8], String>;

/// One region from [`BASE`] to a little behind the last array: what is not listed reads as zero.
fn image(form: &Form, slice: Slice) -> Result<Memory, String> {
    let expected = form.expected.iter().flatten().map(|e| &e.piece);
    let others = || form.other_code.iter().chain(&form.memory).flatten();
    let pieces = || std::iter::once(&form.code).chain(others());
    let end = pieces().chain(expected.clone()).map(|p| u64::from(p.address).saturating_add(p.length)).max();
    let size = end.unwrap_or(0).saturating_sub(u64::from(BASE)).saturating_add(TAIL);
    if size > MAX_IMAGE {
        return Err(format!("the arrays span {size} bytes, more than {MAX_IMAGE}"));
    }
    let offset = |piece: &PieceForm| {
        let name = piece.name("memory");
        piece.address.checked_sub(BASE).map(|offset| offset as usize).ok_or_else(|| {
            format!("{name}: address {:#x} lies below {BASE:#x}, where memory begins", piece.address)
        })
    };
    for piece in expected {
        offset(piece)?;
    }
    let mut contents = vec![0; size as usize];
    for piece in pieces() {
        let from = slice(&piece.name("memory"), piece.offset, piece.length)?;
        let at = offset(piece)?;
        // Inside: the end of every piece went into the size.
        contents[at..at + from.len()].copy_from_slice(from);
    }
    let mut memory = Memory::new();
    memory.put("memory", BASE, contents, true)?;
    Ok(memory)
}

fn read_expected(form: &ExpectedForm, slice: Slice) -> Result<Expected, String> {
    let piece = &form.piece;
    let name = piece.name("expected");
    let bytes = slice(&name, piece.offset, piece.length)?.to_vec();
    let dtype = form.dtype.as_deref().unwrap_or("uint8");
    let element = element(dtype).ok_or_else(|| format!("{name}: dtype `{}`", dtype.escape_debug()))?;
    if bytes.len() % element.bytes() != 0 {
        return Err(format!("{name}: {} bytes are no whole elements of {dtype}", bytes.len()));
    }
    let tolerance = match form.compare.as_str() {
        "exact" => None,
        "rtol" => Some((form.rtol.unwrap_or(0.0), form.atol.unwrap_or(0.0))),
        other => return Err(format!("{name}: compare `{}`", other.escape_debug())),
    };
    let count = (bytes.len() / element.bytes()) as u64;
    let mask = form.mask_offset.map(|offset| slice(&name, offset, count)).transpose()?;
    Ok(Expected {
        address: piece.address,
        bytes,
        element,
        tolerance,
        mask: mask.map(|m| m.iter().map(|&b| b != 0).collect()),
        changed: form.changed,
        name,
    })
}

/// The element type, by its name as array libraries have it.
fn element(dtype: &str) -> Option<Element> {
    Some(match dtype {
        "float16" | "<f2" => Element::Float(2),
        "float32" | "<f4" => Element::Float(4),
        "float64" | "<f8" => Element::Float(8),
        "int8" | "|i1" => Element::Signed(1),
        "int16" | "<i2" => Element::Signed(2),
        "int32" | "<i4" => Element::Signed(4),
        "int64" | "<i8" => Element::Signed(8),
        "uint8" | "|u1" | "bool" | "|b1" => Element::Unsigned(1),
        "uint16" | "<u2" => Element::Unsigned(2),
        "uint32" | "<u4" => Element::Unsigned(4),
        "uint64" | "<u8" => Element::Unsigned(8),
        // `i8` and `u8` are one byte here, as everywhere else in this crate.
        short => return Element::from_name(short),
    })
}

impl Expected {
    /// The first difference, as a message.
    fn difference(&self, before: &Memory, after: &Memory, undefined: &[u32]) -> Option<String> {
        fn region<'a>(memory: &'a Memory, e: &Expected) -> Option<&'a [u8]> {
            let (region, offset) = memory.find(e.address, e.bytes.len() as u32)?;
            Some(&memory.bytes(region)[offset..offset + e.bytes.len()])
        }
        let Some((was, now)) = region(before, self).zip(region(after, self)) else {
            return Some(format!("{}: {:#x} lies outside of memory", self.name, self.address));
        };
        let size = self.element.bytes();
        for (i, (expected, actual)) in self.bytes.chunks(size).zip(now.chunks(size)).enumerate() {
            if self.mask.as_ref().is_some_and(|mask| !mask[i]) {
                continue;
            }
            let (e, a) = (self.element.value(expected), self.element.value(actual));
            let from = self.address + (i * size) as u32;
            let next = undefined.partition_point(|&at| at < from);
            if undefined.get(next).is_some_and(|&at| at - from < size as u32) {
                return Some(format!("{}: element {i} is undefined, expected {e}", self.name));
            }
            if expected == actual || self.tolerance.is_some_and(|t| close(a.as_f64(), e.as_f64(), t)) {
                continue;
            }
            return Some(format!("{}: element {i} is {a}, expected {e}", self.name));
        }
        // With a mask the elements that are not compared may be what changes.
        match self.changed.filter(|_| self.mask.is_none()) {
            Some(true) if was == now => Some(format!("{}: nothing was changed", self.name)),
            Some(false) if was != now => Some(format!("{}: was changed", self.name)),
            _ => None,
        }
    }
}

/// Whether a number is as close to another as the relative and absolute tolerances want. Infinities have to be equal, and
/// a NaN is as good as another.
fn close(is: f64, expected: f64, (relative, absolute): (f64, f64)) -> bool {
    if expected.is_finite() && is.is_finite() {
        return (is - expected).abs() <= absolute + relative * expected.abs();
    }
    is == expected || is.is_nan() && expected.is_nan()
}
