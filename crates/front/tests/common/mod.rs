//! A small assembler for SPIR-V text, and running what comes out of the front end on the interpreter.
#![allow(dead_code)]

pub mod sizes;

use kempe_front::{Language, Options, compile};
use kempe_ir::exec::{Environment, Inputs, Sizes};
use kempe_ir::{Module, interp};
use std::collections::HashMap;

/// Instructions whose result is the first operand although they have no result type.
const UNTYPED: &[&str] =
    &["OpLabel", "OpString", "OpExtInstImport", "OpDecorationGroup", "OpTypeForwardPointer"];

/// Assembles text: one instruction a line, `%name` for ids, numbers (also `0x..`, and `1.5f` for the bits of a
/// float), `"strings"`. Enumerants are written as numbers.
pub fn assemble(text: &str) -> Vec<u32> {
    let mut ids: HashMap<String, u32> = HashMap::new();
    let mut opcodes: HashMap<String, u32> = HashMap::new();
    let mut body = Vec::new();
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (result, rest) = match line.split_once(" = ") {
            Some((r, rest)) => (Some(r.trim()), rest.trim()),
            None => (None, line),
        };
        let mut tokens = tokens(rest).into_iter();
        let name = tokens.next().expect("an instruction");
        let op = *opcodes.entry(name.clone()).or_insert_with(|| opcode(&name));
        let mut words = Vec::new();
        let mut operands: Vec<String> = tokens.collect();
        if let Some(r) = result {
            let untyped = name.starts_with("OpType") || UNTYPED.contains(&name.as_str());
            operands.insert(if untyped { 0 } else { 1 }, r.to_owned());
        }
        for o in operands {
            if let Some(id) = o.strip_prefix('%') {
                let next = ids.len() as u32 + 1;
                words.push(*ids.entry(id.to_owned()).or_insert(next));
            } else if let Some(s) = o.strip_prefix('"') {
                let mut bytes = s.as_bytes().to_vec();
                bytes.push(0);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
                words.extend(bytes.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])));
            } else if let Some(hex) = o.strip_prefix("0x") {
                words.push(u32::from_str_radix(hex, 16).expect("a number"));
            } else if let Some(f) = o.strip_suffix('f') {
                words.push(f.parse::<f32>().expect("a float").to_bits());
            } else {
                words.push(o.parse::<i64>().expect("a number") as u32);
            }
        }
        body.push((words.len() as u32 + 1) << 16 | op);
        body.extend(words);
    }
    let mut out = vec![0x0723_0203, 0x0001_0500, 0, ids.len() as u32 + 1, 0];
    out.extend(body);
    out
}

fn tokens(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = line;
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        if let Some(s) = rest.strip_prefix('"') {
            let (s, r) = s.split_once('"').expect("the end of a string");
            out.push(format!("\"{s}"));
            rest = r;
        } else {
            let end = rest.find(' ').unwrap_or(rest.len());
            out.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
    }
    out
}

fn opcode(name: &str) -> u32 {
    let name = name.strip_prefix("Op").expect("an instruction name");
    (0..7000)
        .find(|n| spirv::Op::from_u32(*n).is_some_and(|op| format!("{op:?}") == name))
        .unwrap_or_else(|| panic!("unknown instruction {name}"))
}

/// The module around function bodies: one storage buffer `%out` and one `%in` (run-time arrays of 32-bit words,
/// set 0, bindings 0 and 1), usual types and constants, the global invocation id `%gid` (x component in `%x` of
/// every `main`). `globals` go in front of the functions.
pub fn shader(globals: &str, functions: &str) -> Vec<u32> {
    assemble(&format!(
        r#"
        OpCapability 1
        %glsl = OpExtInstImport "GLSL.std.450"
        OpMemoryModel 0 1
        OpEntryPoint 5 %main "main" %gid
        OpExecutionMode %main 17 8 1 1
        OpDecorate %gid 11 28
        OpDecorate %words 6 4
        OpDecorate %block 2
        OpMemberDecorate %block 0 35 0
        OpDecorate %out 34 0
        OpDecorate %out 33 0
        OpDecorate %in 34 0
        OpDecorate %in 33 1
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %bool = OpTypeBool
        %uint = OpTypeInt 32 0
        %int = OpTypeInt 32 1
        %float = OpTypeFloat 32
        %v2uint = OpTypeVector %uint 2
        %v3uint = OpTypeVector %uint 3
        %v4uint = OpTypeVector %uint 4
        %v2float = OpTypeVector %float 2
        %v3float = OpTypeVector %float 3
        %v4float = OpTypeVector %float 4
        %true = OpConstantTrue %bool
        %false = OpConstantFalse %bool
        %u0 = OpConstant %uint 0
        %u1 = OpConstant %uint 1
        %u2 = OpConstant %uint 2
        %u3 = OpConstant %uint 3
        %u4 = OpConstant %uint 4
        %u10 = OpConstant %uint 10
        %f0 = OpConstant %float 0
        %f1 = OpConstant %float 1f
        %f2 = OpConstant %float 2f
        %words = OpTypeRuntimeArray %uint
        %block = OpTypeStruct %words
        %pblock = OpTypePointer 12 %block
        %puint = OpTypePointer 12 %uint
        %fuint = OpTypePointer 7 %uint
        %pin = OpTypePointer 1 %v3uint
        %pinu = OpTypePointer 1 %uint
        %gid = OpVariable %pin 1
        %out = OpVariable %pblock 12
        %in = OpVariable %pblock 12
        {globals}
        {functions}
        "#
    ))
}

/// A `main` that sees `%x` (its number) and `%a` (the word of `%in` at its number) and whose result `%r` goes to the
/// word of `%out` at its number.
pub fn body(code: &str) -> String {
    format!(
        r#"
        %main = OpFunction %void 0 %fn
        %entry = OpLabel
        %px = OpAccessChain %pinu %gid %u0
        %x = OpLoad %uint %px
        %pa = OpAccessChain %puint %in %u0 %x
        %a = OpLoad %uint %pa
        {code}
        %pr = OpAccessChain %puint %out %u0 %x
        OpStore %pr %r
        OpReturn
        OpFunctionEnd
        "#
    )
}

pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

pub fn convert(words: &[u32]) -> Result<Module, String> {
    convert_with(words, &Options::default())
}

pub fn convert_with(words: &[u32], options: &Options) -> Result<Module, String> {
    match compile("test.spv", &bytes(words), Language::Spirv, options) {
        Ok(mut m) => Ok(m.remove(0)),
        Err(e) => Err(e.to_string()),
    }
}

/// Runs one work-group of 8 on words in and gives the words out.
pub fn run(module: &Module, input: &[u32]) -> Vec<u32> {
    let inputs = Inputs::new([1, 1, 1]).buffer(0, 0, vec![0; 4 * 64]).buffer(0, 1, bytes(input));
    let env = Environment::new(module, &inputs, Sizes::source()).expect("an environment");
    let outcome = interp::run(module, &env, &interp::Options::source()).expect("a run");
    let out = env.buffer_contents(&outcome.memory)[0];
    out.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// Converts a shader and runs it on 8 words.
pub fn eval(globals: &str, code: &str, input: &[u32; 8]) -> Vec<u32> {
    let words = shader(globals, &body(code));
    let module = convert(&words).unwrap_or_else(|e| panic!("{e}"));
    let mut out = run(&module, input);
    out.truncate(8);
    out
}
