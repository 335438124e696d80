//! Parsing modules.

use super::*;
use crate::entity::Entity;
use crate::image::{Axis, Component, Dim, Format, ImageInfo};
use crate::io::{DepthMode, Interpolation, IoImm, Owner, Sampling, Slot};
use crate::module::*;
use crate::ops::Op;
use crate::primitive::{Domain, InputPrimitive, OutputPrimitive, PrimitiveModes, Spacing};
use crate::sample::{Level, Lookup, SampleImm};
use crate::types::{Space, Type};
use smallvec::SmallVec;
use std::fmt;

/// Where and why a text is not a module. Lines and columns count from 1; columns in characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    pub line: u32,
    pub column: u32,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Ids may be this large even in a short text (it may be the remainder of a long one); each costs a few bytes.
const MAX_ID: u32 = 1 << 20;

type Result<T> = std::result::Result<T, ParseError>;

/// Reads the text form.
pub fn parse(text: &str) -> Result<Module> {
    let mut p = Parser {
        m: Module::new("", Stage::Compute),
        max_id: MAX_ID.max(text.len().min(u32::MAX as usize / 2) as u32),
        values: Vec::new(),
        blocks: Vec::new(),
        current: None,
        in_func: false,
        seen_module: false,
    };
    let mut last = 0;
    for (n, line) in text.lines().enumerate() {
        last = n as u32 + 1;
        let mut l = Line { text: line, at: 0, number: last };
        l.space();
        if !l.end() {
            p.statement(&mut l)?;
            l.space();
            if !l.end() {
                return l.fail("expected the end of the line");
            }
        }
    }
    p.finish(last)
}

/// One line and a position in it.
struct Line<'a> {
    text: &'a str,
    at: usize,
    number: u32,
}

impl<'a> Line<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        let column = self.text[..self.at].chars().count() as u32 + 1;
        Err(ParseError { line: self.number, column, message: message.into() })
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// At the end or at a comment.
    fn end(&self) -> bool {
        self.rest().is_empty() || self.rest().starts_with(';')
    }

    fn peek(&mut self, token: &str) -> bool {
        self.space();
        self.rest().starts_with(token)
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.peek(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { self.fail(format!("expected `{token}`")) }
    }

    /// A run of letters, digits and underscores (may be empty).
    fn word(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Eats a keyword if it is the next word.
    fn keyword(&mut self, word: &str) -> bool {
        let start = self.at;
        let found = self.word() == word;
        if !found {
            self.at = start;
        }
        found
    }

    fn expect_keyword(&mut self, word: &str) -> Result<()> {
        if self.keyword(word) { Ok(()) } else { self.fail(format!("expected `{word}`")) }
    }

    /// A number, decimal or `0x` hexadecimal.
    fn u64(&mut self) -> Result<u64> {
        self.space();
        let start = self.at;
        let w = self.word();
        let parsed = match w.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => w.parse().ok(),
        };
        match parsed {
            // `parse` takes a sign, which a word cannot have.
            Some(n) => Ok(n),
            None => {
                self.at = start;
                self.fail("expected a number")
            }
        }
    }

    fn u32(&mut self) -> Result<u32> {
        self.space();
        let start = self.at;
        match u32::try_from(self.u64()?) {
            Ok(n) => Ok(n),
            Err(_) => {
                self.at = start;
                self.fail("the number is beyond 32 bits")
            }
        }
    }

    fn u16(&mut self) -> Result<u16> {
        self.space();
        let start = self.at;
        match u16::try_from(self.u64()?) {
            Ok(n) => Ok(n),
            Err(_) => {
                self.at = start;
                self.fail("the number is beyond 65535")
            }
        }
    }

    fn u8(&mut self) -> Result<u8> {
        self.space();
        let start = self.at;
        match u8::try_from(self.u64()?) {
            Ok(n) => Ok(n),
            Err(_) => {
                self.at = start;
                self.fail("the number is beyond 255")
            }
        }
    }

    fn i32(&mut self) -> Result<i32> {
        let negative = self.eat("-");
        let start = self.at;
        let n = self.u64()?;
        match (negative, n) {
            (false, 0..=0x7fff_ffff) => Ok(n as i32),
            (true, 0..=0x8000_0000) => Ok((n as i64).wrapping_neg() as i32),
            _ => {
                self.at = start;
                self.fail("the number is beyond 32 bits")
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        self.expect("\"")?;
        let mut s = String::new();
        loop {
            let mut chars = self.rest().chars();
            match chars.next() {
                None => return self.fail("the string does not end"),
                Some('"') => {
                    self.at += 1;
                    return Ok(s);
                }
                Some('\\') => {
                    let rest = chars.as_str();
                    match chars.next() {
                        Some(c @ ('"' | '\\')) => {
                            s.push(c);
                            self.at += 2;
                        }
                        Some('u') => {
                            let digits =
                                rest.strip_prefix("u{").and_then(|r| r.split_once('}')).map(|(d, _)| d);
                            let c =
                                digits.and_then(|d| u32::from_str_radix(d, 16).ok()).and_then(char::from_u32);
                            let (Some(d), Some(c)) = (digits, c) else {
                                return self.fail("expected \\u{hexadecimal number of a character}");
                            };
                            s.push(c);
                            self.at += 4 + d.len();
                        }
                        _ => return self.fail("unknown escape"),
                    }
                }
                Some(c) => {
                    s.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    fn named<T: Copy>(&mut self, what: &str, table: &[(&'static str, T)]) -> Result<T> {
        self.space();
        let start = self.at;
        let w = self.word();
        match value_of(table, w) {
            Some(v) => Ok(v),
            None => {
                self.at = start;
                self.fail(format!("expected {what}"))
            }
        }
    }

    fn id(&mut self, prefix: &str, max: u32) -> Result<u32> {
        self.space();
        let start = self.at;
        self.expect(prefix)?;
        let n = self.u32()?;
        if n >= max {
            self.at = start;
            return self.fail(format!("the number of {prefix}{n} is too large"));
        }
        Ok(n)
    }

    fn space_name(&mut self) -> Result<Space> {
        self.space();
        let start = self.at;
        let w = self.word();
        match Space::ALL.into_iter().find(|s| s.name() == w) {
            Some(s) => Ok(s),
            None => {
                self.at = start;
                self.fail("expected an address space")
            }
        }
    }

    fn ty(&mut self) -> Result<Type> {
        self.space();
        let start = self.at;
        let ty = match self.word() {
            "bool" => Type::Bool,
            "i8" => Type::I8,
            "i16" => Type::I16,
            "i32" => Type::I32,
            "i64" => Type::I64,
            "f16" => Type::F16,
            "f32" => Type::F32,
            "f64" => Type::F64,
            "ptr" => {
                self.expect(".")?;
                Type::Ptr(self.space_name()?)
            }
            _ => {
                self.at = start;
                return self.fail("expected a type");
            }
        };
        Ok(ty)
    }
}

/// What stands behind the other facts of an image.
fn image_info(l: &mut Line) -> Result<ImageInfo> {
    let component = l.named("float, int or uint", &Component::ALL)?;
    let dim = l.named("a dimension", &Dim::ALL)?;
    let arrayed = l.keyword("array");
    let multisampled = l.keyword("ms");
    let depth = l.keyword("depth");
    let mut format = None;
    if l.keyword("format") {
        l.space();
        let start = l.at;
        format = Format::from_name(l.word());
        if format.is_none() {
            l.at = start;
            return l.fail("expected a format");
        }
    }
    Ok(ImageInfo { dim, arrayed, multisampled, depth, component, format })
}

struct Parser {
    m: Module,
    max_id: u32,
    /// Definition by value id; `None` for ids that were not defined (yet).
    values: Vec<Option<ValueData>>,
    /// By block id.
    blocks: Vec<Option<BlockData>>,
    /// The block that is being filled.
    current: Option<Block>,
    in_func: bool,
    seen_module: bool,
}

impl Parser {
    fn statement(&mut self, l: &mut Line) -> Result<()> {
        if self.in_func {
            return self.body(l);
        }
        let start = l.at;
        let word = l.word();
        if word != "module" && !self.seen_module {
            l.at = start;
            return l.fail("expected `module`");
        }
        match word {
            "module" => {
                self.m.name = l.string()?;
                self.m.stage = l.named("a stage", STAGES)?;
                self.seen_module = true;
            }
            "workgroup" => self.m.workgroup_size = [l.u32()?, l.u32()?, l.u32()?],
            "fragment" => {
                self.m.fragment.early_tests = l.keyword("early_tests");
                if l.keyword("depth") {
                    self.m.fragment.depth = l.named("a promise about depth", &DepthMode::NAMES)?;
                }
            }
            "primitive" => {
                l.expect_keyword("input")?;
                let input = l.named("a kind of primitive", &InputPrimitive::NAMES)?;
                l.expect_keyword("output")?;
                let output = l.named("a kind of primitive", &OutputPrimitive::NAMES)?;
                l.expect_keyword("vertices")?;
                let vertices = l.u32()?;
                l.expect_keyword("invocations")?;
                let invocations = l.u32()?;
                l.expect_keyword("domain")?;
                let domain = l.named("a domain", &Domain::NAMES)?;
                l.expect_keyword("spacing")?;
                let spacing = l.named("a spacing", &Spacing::NAMES)?;
                let clockwise = l.keyword("clockwise");
                let point_mode = l.keyword("point_mode");
                self.m.primitive = PrimitiveModes {
                    input,
                    output,
                    vertices,
                    invocations,
                    domain,
                    spacing,
                    clockwise,
                    point_mode,
                };
            }
            "subgroups" => self.m.uses_subgroups = true,
            "file" => {
                let name = l.string()?;
                self.m.files.push(name);
            }
            "loc" => {
                let line = SourceLine { file: l.u32()?, line: l.u32()?, column: l.u32()? };
                self.m.locs.push(line);
            }
            "resource" => {
                self.next_id(l, "@", self.m.resources.len())?;
                let kind = l.named("a kind of resource", RES_KINDS)?;
                let mut field = |name: &str| {
                    l.expect_keyword(name)?;
                    l.u32()
                };
                let r = Resource {
                    kind,
                    set: field("set")?,
                    binding: field("binding")?,
                    elements: field("elements")?,
                    size: field("size")?,
                    tail_stride: field("stride")?,
                    read_only: l.keyword("readonly"),
                    image: if kind.is_image() { Some(image_info(l)?) } else { None },
                    name: l.string()?,
                };
                self.m.resources.push(r);
            }
            "var" => {
                self.next_id(l, "$", self.m.vars.len())?;
                let space = l.space_name()?;
                l.expect_keyword("size")?;
                let size = l.u32()?;
                l.expect_keyword("align")?;
                let align = l.u32()?;
                let name = l.string()?;
                self.m.vars.push(Variable { space, size, align, name });
            }
            "data" => loop {
                l.space();
                if l.end() {
                    break;
                }
                let digits = l.rest().get(..2).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
                    Some(b) => self.m.constant_data.push(b),
                    None => return l.fail("expected two hexadecimal digits"),
                }
                l.at += 2;
            },
            "func" => self.in_func = true,
            _ => {
                l.at = start;
                return l.fail("unknown statement");
            }
        }
        Ok(())
    }

    /// Resources and variables are numbered in order.
    fn next_id(&self, l: &mut Line, prefix: &str, next: usize) -> Result<()> {
        l.space();
        let start = l.at;
        if l.id(prefix, u32::MAX)? as usize != next {
            l.at = start;
            return l.fail(format!("expected {prefix}{next}"));
        }
        Ok(())
    }

    fn value(&self, l: &mut Line) -> Result<Value> {
        Ok(Value(l.id("%", self.max_id)?))
    }

    fn value_list(&self, l: &mut Line) -> Result<SmallVec<[Value; 4]>> {
        let mut list = SmallVec::new();
        loop {
            list.push(self.value(l)?);
            if !l.eat(",") {
                return Ok(list);
            }
        }
    }

    /// `%ID:TYPE "name"`.
    fn definition(&mut self, l: &mut Line, def: ValueDef) -> Result<Value> {
        l.space();
        let start = l.at;
        let v = self.value(l)?;
        let at = l.at;
        l.expect(":")?;
        let ty = l.ty()?;
        if l.peek("\"") {
            let name = l.string()?;
            self.m.func.names.insert(v, name);
        }
        if self.values.len() <= v.index() {
            self.values.resize(v.index() + 1, None);
        }
        if self.values[v.index()].is_some() {
            l.at = start;
            return l.fail(format!("{v} is defined twice"));
        }
        debug_assert!(at > start);
        self.values[v.index()] = Some(ValueData { ty, def });
        Ok(v)
    }

    fn body(&mut self, l: &mut Line) -> Result<()> {
        l.space();
        let start = l.at;
        let rest = l.rest();
        // A block starts with `b` and a digit, which no operation does.
        let mut first = rest.chars();
        if first.next() == Some('b') && first.next().is_some_and(|c| c.is_ascii_digit()) {
            return self.block(l);
        }
        let Some(b) = self.current else {
            return l.fail("expected a block");
        };
        if rest.starts_with('%') {
            return self.inst(l, b);
        }
        let term = match l.word() {
            "jump" => Term::Jump(self.target(l)?),
            "branch" => {
                let cond = self.value(l)?;
                l.expect(",")?;
                let then = self.target(l)?;
                l.expect(",")?;
                Term::Branch { cond, then, els: self.target(l)? }
            }
            "return" => Term::Return,
            "unreachable" => Term::Unreachable,
            _ => {
                l.at = start;
                return self.inst(l, b);
            }
        };
        let loc = self.location(l)?;
        if let Some(data) = &mut self.blocks[b.index()] {
            data.term = term;
            data.term_loc = loc;
        }
        self.current = None;
        Ok(())
    }

    fn block(&mut self, l: &mut Line) -> Result<()> {
        if let Some(b) = self.current {
            return l.fail(format!("{b} has no end before this block"));
        }
        let start = l.at;
        let b = Block(l.id("b", self.max_id)?);
        let mut data = BlockData {
            params: SmallVec::new(),
            insts: Vec::new(),
            term: Term::Unreachable,
            loop_hint: LoopHint::None,
            branch_hint: BranchHint::None,
            term_loc: Loc(0),
        };
        if self.blocks.len() <= b.index() {
            self.blocks.resize(b.index() + 1, None);
        }
        if self.blocks[b.index()].is_some() {
            l.at = start;
            return l.fail(format!("{b} stands in two places"));
        }
        if l.eat("(") {
            loop {
                if data.params.len() >= u16::MAX as usize {
                    return l.fail("too many parameters");
                }
                let n = data.params.len() as u16;
                let p = self.definition(l, ValueDef::Param(b, n))?;
                data.params.push(p);
                if !l.eat(",") {
                    break;
                }
            }
            l.expect(")")?;
        }
        while l.eat("[") {
            match l.word() {
                "unroll" => data.loop_hint = LoopHint::Unroll,
                "dontunroll" => data.loop_hint = LoopHint::DontUnroll,
                "flatten" => data.branch_hint = BranchHint::Flatten,
                "dontflatten" => data.branch_hint = BranchHint::DontFlatten,
                _ => return l.fail("expected unroll, dontunroll, flatten or dontflatten"),
            }
            l.expect("]")?;
        }
        l.expect(":")?;
        self.blocks[b.index()] = Some(data);
        self.m.func.layout.push(b);
        self.current = Some(b);
        Ok(())
    }

    fn target(&self, l: &mut Line) -> Result<Target> {
        let block = Block(l.id("b", self.max_id)?);
        let mut args = SmallVec::new();
        if l.eat("(") {
            args = self.value_list(l)?;
            l.expect(")")?;
        }
        Ok(Target { block, args })
    }

    fn location(&self, l: &mut Line) -> Result<Loc> {
        Ok(if l.eat("#") { Loc(l.u32()?) } else { Loc(0) })
    }

    fn inst(&mut self, l: &mut Line, b: Block) -> Result<()> {
        let id = Inst(self.m.func.insts.len() as u32);
        let mut results = SmallVec::new();
        if l.peek("%") {
            loop {
                if results.len() >= u16::MAX as usize {
                    return l.fail("too many results");
                }
                let n = results.len() as u16;
                results.push(self.definition(l, ValueDef::Inst(id, n))?);
                if !l.eat(",") {
                    break;
                }
            }
            l.expect("=")?;
        }
        l.space();
        let start = l.at;
        let word = l.word();
        let Some(op) = Op::from_name(word) else {
            l.at = start;
            return l.fail("unknown operation");
        };
        l.expect(".")?;
        let ty = l.ty()?;
        let imm = if l.eat("<") {
            let imm = self.immediate(l, op)?;
            l.expect(">")?;
            imm
        } else {
            Imm::None
        };
        let args = if l.peek("%") { self.value_list(l)?.into_iter().collect() } else { SmallVec::new() };
        let mut flags = Flags::NONE;
        if l.eat("{") {
            while !l.eat("}") {
                flags = flags.with(l.named("a flag", FLAGS)?);
            }
        }
        let loc = self.location(l)?;
        self.m.func.insts.push(InstData { op, ty, flags, imm, args, results, loc });
        if let Some(data) = &mut self.blocks[b.index()] {
            data.insts.push(id);
        }
        Ok(())
    }

    /// What stands between `<` and `>`: its kind follows from the operation.
    fn immediate(&self, l: &mut Line, op: Op) -> Result<Imm> {
        Ok(match op {
            Op::Const | Op::Payload => Imm::Int(l.u64()?),
            Op::Lea => {
                l.expect_keyword("scale")?;
                let scale = l.u32()?;
                l.expect_keyword("offset")?;
                Imm::Lea(LeaImm { scale, offset: l.i32()? })
            }
            Op::Load | Op::Store => {
                let space = l.space_name()?;
                l.expect("x")?;
                let count = l.u8()?;
                l.expect_keyword("align")?;
                let align = l.u32()?;
                let volatile = l.keyword("volatile");
                Imm::Mem(MemImm { space, count, align, volatile, read_only: l.keyword("readonly") })
            }
            Op::Atomic => {
                let op = l.named("an atomic operation", ATOMIC_OPS)?;
                Imm::Atomic(AtomicImm { op, space: l.space_name()? })
            }
            Op::ImageLoad | Op::ImageStore | Op::ImageAtomic | Op::ImageSize | Op::ImageLevels => {
                let mut i = ImageImm::new(Res(l.id("@", u32::MAX)?));
                if op == Op::ImageAtomic {
                    i.atomic = Some(l.named("an atomic operation", ATOMIC_OPS)?);
                } else {
                    i.form = l.named("color, words or halves", TEXEL_FORMS)?;
                }
                i.mask = if l.keyword("mask") { l.u8()? } else { 0 };
                i.element = l.keyword("element");
                i.lod = l.keyword("lod");
                i.volatile = l.keyword("volatile");
                Imm::Image(i)
            }
            Op::VarAddr => Imm::Var(Var(l.id("$", u32::MAX)?)),
            Op::ResourceAddr | Op::ResourceSize => Imm::Res(Res(l.id("@", u32::MAX)?)),
            Op::Builtin => {
                l.space();
                let start = l.at;
                let word = l.word();
                match BUILTINS.iter().find(|(n, ..)| *n == word) {
                    Some((_, b, false)) => Imm::Builtin(*b),
                    Some((_, b, true)) => {
                        let c = l.u8()?;
                        Imm::Builtin(b.with_component(c))
                    }
                    None => {
                        l.at = start;
                        return l.fail("expected a built-in");
                    }
                }
            }
            Op::Uniform => {
                l.space();
                let start = l.at;
                Imm::Uniform(match l.word() {
                    "buffer_addr" => {
                        UniformWord::BufferAddr { res: Res(l.id("@", u32::MAX)?), element: l.u32()? }
                    }
                    "buffer_size" => {
                        UniformWord::BufferSize { res: Res(l.id("@", u32::MAX)?), element: l.u32()? }
                    }
                    "texture_state" => {
                        UniformWord::TextureState { res: Res(l.id("@", u32::MAX)?), element: l.u32()? }
                    }
                    "sampler_state" => {
                        UniformWord::SamplerState { res: Res(l.id("@", u32::MAX)?), element: l.u32()? }
                    }
                    "viewport_scale" => UniformWord::ViewportScale { axis: l.u8()?, steps: l.u32()? },
                    "image_size" => UniformWord::ImageSize {
                        res: Res(l.id("@", u32::MAX)?),
                        element: l.u32()?,
                        axis: l.named("an axis", &Axis::ALL)?,
                    },
                    "push_word" => UniformWord::PushWord(l.u32()?),
                    "num_workgroups" => UniformWord::NumWorkgroups(l.u8()?),
                    word => match value_of(PLAIN_WORDS, word) {
                        Some(w) => w,
                        None => {
                            l.at = start;
                            return l.fail("expected a uniform word");
                        }
                    },
                })
            }
            Op::Sample | Op::SampleImplicit => {
                let mut i = SampleImm::new(Res(l.id("@", u32::MAX)?));
                if l.keyword("sampler") {
                    i.sampler = Some(Res(l.id("@", u32::MAX)?));
                }
                i.lookup = l.named("what is looked up", &Lookup::NAMES)?;
                i.level = l.named("a level of detail", &Level::NAMES)?;
                l.expect_keyword("mask")?;
                i.mask = l.u8()?;
                i.element = l.keyword("element");
                i.sampler_element = l.keyword("sampler_element");
                i.dref = l.keyword("dref");
                i.offset = l.keyword("offset");
                i.pixels = l.keyword("pixels");
                i.machine = l.keyword("machine");
                if i.machine {
                    for t in &mut i.texels {
                        let n = l.i32()?;
                        *t = match i8::try_from(n) {
                            Ok(n) => n,
                            Err(_) => return l.fail(format!("an offset of {n} texels")),
                        };
                    }
                }
                Imm::Sample(i)
            }
            Op::Input | Op::Output | Op::ReadOutput => {
                let slot = match l.named("a place in the interface", &Slot::NAMES)? {
                    Slot::Location(_) => Slot::Location(l.u8()?),
                    Slot::Row(_) => Slot::Row(l.u16()?),
                    other => other,
                };
                l.expect_keyword("component")?;
                let mut io = IoImm::new(slot, l.u8()?);
                io.index = if l.keyword("index") { l.u8()? } else { 0 };
                let choose = |l: &mut Line, name: &str| l.keyword(name);
                if let Some((_, i)) = Interpolation::NAMES.iter().find(|(n, _)| choose(l, n)) {
                    io.interpolation = *i;
                }
                if let Some((_, w)) = Sampling::NAMES.iter().find(|(n, _)| choose(l, n)) {
                    io.sampling = *w;
                }
                if let Some((_, o)) = Owner::NAMES.iter().find(|(n, _)| choose(l, n)) {
                    io.owner = *o;
                }
                io.locations = if l.keyword("locations") { l.u16()? } else { 0 };
                io.components = if l.keyword("components") { l.u8()? } else { 0 };
                Imm::Io(io)
            }
            Op::EmitVertex | Op::EndPrimitive => {
                l.expect_keyword("stream")?;
                Imm::Stream(l.u8()?)
            }
            Op::Barrier | Op::Fence => {
                let shared = l.keyword("shared");
                Imm::Barrier(BarrierImm { shared, storage: l.keyword("storage") })
            }
            Op::Reduce => {
                l.space();
                let start = l.at;
                let Some(op) = Op::from_name(l.word()) else {
                    l.at = start;
                    return l.fail("unknown operation");
                };
                let kind = l.named("reduce, inclusive or exclusive", REDUCE_KINDS)?;
                l.expect_keyword("cluster")?;
                Imm::Reduce(ReduceImm { op, kind, cluster: l.u8()? })
            }
            _ => return l.fail(format!("{} has no immediate", op.name())),
        })
    }

    /// Puts the definitions where they belong; ids that were not defined become results of `undef` instructions
    /// that stand in no block, and blocks that are not in the layout.
    fn finish(mut self, line: u32) -> Result<Module> {
        let fail = |message: String| Err(ParseError { line: line.max(1), column: 1, message });
        if !self.seen_module {
            return fail("expected `module`".to_owned());
        }
        if let Some(b) = self.current {
            return fail(format!("the text ends inside of {b}"));
        }
        let f = &mut self.m.func;
        // Uses may name ids beyond the last definition: the verifier shall say so, not an index out of range.
        for (n, v) in self.values.into_iter().enumerate() {
            let data = match v {
                Some(data) => data,
                None => {
                    let i = f.insts.push(InstData {
                        op: Op::Undef,
                        ty: Type::Bool,
                        flags: Flags::NONE,
                        imm: Imm::None,
                        args: SmallVec::new(),
                        results: SmallVec::from_slice(&[Value(n as u32)]),
                        loc: Loc(0),
                    });
                    ValueData { ty: Type::Bool, def: ValueDef::Inst(i, 0) }
                }
            };
            f.values.push(data);
        }
        for b in self.blocks {
            match b {
                Some(data) => _ = f.blocks.push(data),
                None => _ = f.add_block_detached(),
            }
        }
        Ok(self.m)
    }
}
