//! Features of SPIR-V that the source languages seldom show, each as a small module, and shapes of great size.

mod common;

use common::*;
use kempe_ir::text::print;
use kempe_ir::{Op, Type};

const IN: [u32; 8] = [0, 1, 2, 3, 100, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// A pointer that a selection and a phi choose, and one that is moved like an array.
#[test]
fn variable_pointers() {
    let code = "\
        %one = OpAccessChain %puint %in %u0 %u1
        %two = OpAccessChain %puint %in %u0 %u2
        %low = OpULessThan %bool %x %u4
        %p = OpSelect %puint %low %one %two
        OpSelectionMerge %after 0
        OpBranchConditional %low %then %after
        %then = OpLabel
        %q = OpPtrAccessChain %puint %p %x
        OpBranch %after
        %after = OpLabel
        %s = OpPhi %puint %p %entry %q %then
        %r = OpLoad %uint %s";
    let moved = |x: usize| if x < 4 { IN[1 + x] } else { IN[2] };
    let words = shader("", &body(code));
    // The stride of a pointer that is stepped is a decoration of its type.
    let at = words.iter().position(|w| *w == 2 << 16 | spirv::Op::TypeVoid as u32).unwrap();
    let pointers: Vec<usize> =
        (0..words.len()).filter(|&k| words[k] == 4 << 16 | spirv::Op::TypePointer as u32).collect();
    let storage = pointers.iter().find(|&&k| words[k + 2] == 12 && words[k + 3] != words[pointers[0] + 3]);
    let mut with = words.clone();
    let id = words[*storage.expect("a pointer to words") + 1];
    with.splice(at..at, [4 << 16 | spirv::Op::Decorate as u32, id, 6, 4]);
    let module = convert(&with).unwrap();
    let out = run(&module, &IN);
    assert_eq!(out[..8], (0..8).map(moved).collect::<Vec<u32>>()[..]);
}

/// An array of buffers without a size, one of them chosen by a number that differs between invocations.
#[test]
fn descriptor_arrays_without_a_size() {
    let globals = "\
        %many = OpTypeRuntimeArray %block
        %pmany = OpTypePointer 12 %many
        %list = OpVariable %pmany 12";
    let code = "\
        %pick = OpAccessChain %puint %list %x %u0 %u1
        %r = OpLoad %uint %pick";
    let module = convert(&shader(globals, &body(code))).unwrap();
    assert!(module.resources.values().any(|r| r.elements == 0), "{}", print(&module));
    assert!(print(&module).contains("resource_addr"), "{}", print(&module));
}

/// Lines and files of NonSemantic.Shader.DebugInfo.100.
#[test]
fn debug_information() {
    let text = r#"
        OpCapability 1
        %set = OpExtInstImport "NonSemantic.Shader.DebugInfo.100"
        OpMemoryModel 0 1
        OpEntryPoint 5 %main "main"
        OpExecutionMode %main 17 1 1 1
        %name = OpString "shaders/a.hlsl"
        OpDecorate %block 2
        OpMemberDecorate %block 0 35 0
        OpDecorate %out 34 0
        OpDecorate %out 33 0
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %u0 = OpConstant %uint 0
        %u9 = OpConstant %uint 9
        %u17 = OpConstant %uint 17
        %u4 = OpConstant %uint 4
        %block = OpTypeStruct %uint
        %pblock = OpTypePointer 12 %block
        %puint = OpTypePointer 12 %uint
        %out = OpVariable %pblock 12
        %source = OpExtInst %void %set 35 %name
        %main = OpFunction %void 0 %fn
        %entry = OpLabel
        %line = OpExtInst %void %set 103 %source %u17 %u17 %u4 %u9
        %p = OpAccessChain %puint %out %u0
        OpStore %p %u9
        OpReturn
        OpFunctionEnd
    "#;
    let module = convert(&assemble(text)).unwrap();
    assert_eq!(module.files, ["shaders/a.hlsl"]);
    let places: Vec<(u32, u32)> = module.locs.iter().map(|l| (l.line, l.column)).collect();
    assert_eq!(places, [(17, 4)]);
}

/// Ways out of a loop and of the function, a block that nothing leads to, an end that is never reached.
#[test]
fn ways_out() {
    let code = "\
        OpBranch %head
        %head = OpLabel
        %i = OpPhi %uint %u0 %entry %next %cont
        OpLoopMerge %after %cont 0
        OpBranch %test
        %test = OpLabel
        %many = OpUGreaterThan %bool %i %u10
        OpBranchConditional %many %after %work
        %work = OpLabel
        %found = OpIEqual %bool %i %x
        OpSelectionMerge %on 0
        OpBranchConditional %found %hit %on
        %hit = OpLabel
        %small = OpULessThan %bool %x %u4
        OpSelectionMerge %leave 0
        OpBranchConditional %small %early %leave
        %early = OpLabel
        %pe = OpAccessChain %puint %out %u0 %x
        OpStore %pe %u3
        OpReturn
        %leave = OpLabel
        OpBranch %after
        %on = OpLabel
        OpBranch %cont
        %cont = OpLabel
        %next = OpIAdd %uint %i %u1
        OpBranch %head
        %lost = OpLabel
        %never = OpIAdd %uint %i %u2
        OpUnreachable
        %after = OpLabel
        %r = OpPhi %uint %u10 %test %i %leave";
    let words = shader("", &body(code));
    let module = convert(&words).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(run(&module, &IN)[..8], [3, 3, 3, 3, 4, 5, 6, 7]);
}

/// A loop that never ends is code like any other.
#[test]
fn an_endless_loop() {
    let code = "\
        OpBranch %head
        %head = OpLabel
        OpLoopMerge %after %cont 0
        OpBranch %cont
        %cont = OpLabel
        %pe = OpAccessChain %puint %out %u0 %x
        OpStore %pe %u3
        OpBranch %head
        %after = OpLabel
        %r = OpCopyObject %uint %a";
    let module = convert(&shader("", &body(code))).unwrap();
    assert!(never_ends(&module), "{}", print(&module));
}

/// No block that is reached ends the invocation.
fn never_ends(m: &kempe_ir::Module) -> bool {
    m.func.layout.iter().all(|&b| m.func.blocks[b].term != kempe_ir::Term::Return)
}

/// Float minima and maxima are atomic operations of their own.
#[test]
fn atomic_minimum_of_floats() {
    let globals = "\
        %pfloat = OpTypePointer 4 %float
        %least = OpVariable %pfloat 4";
    let code = "\
        %f = OpConvertUToF %float %x
        %old = OpAtomicFMinEXT %float %least %u1 %u0 %f
        %most = OpAtomicFMaxEXT %float %least %u1 %u0 %f
        %r = OpBitcast %uint %most";
    let text = print(&convert(&shader(globals, &body(code))).unwrap());
    assert!(text.contains("<fmin shared>") && text.contains("<fmax shared>"), "{text}");
}

/// Votes in a group of four.
#[test]
fn votes_of_quads() {
    let code = "\
        %low = OpULessThan %bool %x %u3
        %some = OpGroupNonUniformQuadAnyKHR %bool %low
        %whole = OpGroupNonUniformQuadAllKHR %bool %low
        %s = OpSelect %uint %some %u1 %u0
        %w = OpSelect %uint %whole %u2 %u0
        %r = OpIAdd %uint %s %w";
    assert_eq!(eval("", code, &IN), [1, 1, 1, 1, 0, 0, 0, 0]);
    let code = code.replace("%x %u3", "%x %u4");
    assert_eq!(eval("", &code, &IN), [3, 3, 3, 3, 0, 0, 0, 0]);
}

/// A physical pointer is 64 bits in memory and 32 as a value.
#[test]
fn physical_pointers_are_words() {
    let globals = "\
        OpTypeForwardPointer %pnode 5349
        %ulong = OpTypeInt 64 0
        %node = OpTypeStruct %uint %pnode
        %pnode = OpTypePointer 5349 %node
        %pguint = OpTypePointer 5349 %uint
        %ppnode = OpTypePointer 5349 %pnode";
    let code = "\
        %wide = OpUConvert %ulong %a
        %first = OpConvertUToPtr %pnode %wide
        %link = OpAccessChain %ppnode %first %u1
        %next = OpLoad %pnode %link 2 8
        %data = OpAccessChain %pguint %next %u0
        %v = OpLoad %uint %data 2 4
        OpStore %link %next 2 8
        %back = OpConvertPtrToU %ulong %next
        %low = OpUConvert %uint %back
        %r = OpIAdd %uint %v %low";
    let mut words = shader(globals, &body(code));
    let node = words.iter().position(|w| *w == 4 << 16 | spirv::Op::TypeStruct as u32).unwrap();
    let (id, at) = (words[node + 1], words.iter().position(|w| *w == 2 << 16 | spirv::Op::TypeVoid as u32));
    let offset =
        |member: u32, bytes: u32| [5 << 16 | spirv::Op::MemberDecorate as u32, id, member, 35, bytes];
    let at = at.unwrap();
    words.splice(at..at, offset(0, 0).into_iter().chain(offset(1, 8)));
    let module = convert(&words).unwrap_or_else(|e| panic!("{e}"));
    let loads = module.func.layout.iter().flat_map(|&b| &module.func.blocks[b].insts);
    let loads = loads.map(|&i| &module.func.insts[i]).filter(|d| d.op == Op::Load && d.args.len() == 1);
    assert!(loads.clone().all(|d| d.ty == Type::I32), "{}", print(&module));
    assert!(print(&module).contains("global x2 align 8"), "{}", print(&module));
}

/// One block of 200,000 instructions, 500 selections inside of each other, 1,000 functions: the work grows with the size, which
/// the limits of inlining and of the layers bound. (`crates/kempe/tests/sizes.rs` makes code of them.)
#[test]
fn great_sizes() {
    for (name, words, value) in [sizes::long_block(200_000), sizes::nest(500), sizes::functions(1000)] {
        let module = convert(&words).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(run(&module, &IN)[..8], IN.map(value), "{name}");
    }
}
