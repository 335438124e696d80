//! SPIR-V to IR: what comes out, and what it computes.

mod common;

use common::*;
use kempe_front::Options;
use kempe_ir::text::print;

const IN: [u32; 8] = [0, 1, 2, 3, 100, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

fn map(f: impl Fn(u32) -> u32) -> Vec<u32> {
    IN.iter().map(|x| f(*x)).collect()
}

#[test]
fn smallest_module() {
    let words = shader("", &body("%r = OpIAdd %uint %a %u1"));
    let text = print(&convert(&words).unwrap());
    let expected = "\
module \"main\" compute
workgroup 8 1 1
resource @0 storage set 0 binding 0 elements 1 size 0 stride 4 \"\"
resource @1 storage set 0 binding 1 elements 1 size 0 stride 4 \"\"
func
b0:
  %0:i32 = builtin.i32 <workgroup_id 0>
  %1:i32 = builtin.i32 <local_invocation_id 0>
  %2:i32 = const.i32 <8>
  %5:ptr.storage = resource_addr.ptr.storage <@1>
  %8:i32 = const.i32 <1>
  %10:ptr.storage = resource_addr.ptr.storage <@0>
  %3:i32 = imul.i32 %0, %2
  %4:i32 = iadd.i32 %3, %1
  %6:ptr.storage = lea.ptr.storage <scale 4 offset 0> %5, %4
  %7:i32 = load.i32 <storage x1 align 4> %6
  %9:i32 = iadd.i32 %7, %8
  %11:ptr.storage = lea.ptr.storage <scale 4 offset 0> %10, %4
  store.i32 <storage x1 align 4> %11, %9
  return
";
    assert_eq!(text.trim_end(), expected.trim_end(), "\n{text}");
}

#[test]
fn integer_arithmetic() {
    for (code, f) in [
        ("%r = OpISub %uint %a %u3", (|x| x.wrapping_sub(3)) as fn(u32) -> u32),
        ("%r = OpUDiv %uint %a %u3", |x| x / 3),
        ("%r = OpSDiv %uint %a %u3", |x| ((x as i32) / 3) as u32),
        ("%r = OpUMod %uint %a %u3", |x| x % 3),
        ("%r = OpSRem %uint %a %u3", |x| ((x as i32) % 3) as u32),
        ("%r = OpSMod %uint %a %u3", |x| (x as i32).rem_euclid(3) as u32),
        ("%r = OpSNegate %uint %a", |x| x.wrapping_neg()),
        ("%r = OpNot %uint %a", |x| !x),
        ("%r = OpShiftRightArithmetic %uint %a %u3", |x| ((x as i32) >> 3) as u32),
        ("%r = OpShiftRightLogical %uint %a %u3", |x| x >> 3),
        ("%r = OpShiftLeftLogical %uint %a %u3", |x| x << 3),
        ("%r = OpBitCount %uint %a", |x| x.count_ones()),
        ("%r = OpBitReverse %uint %a", |x| x.reverse_bits()),
        ("%r = OpBitFieldUExtract %uint %a %u3 %u10", |x| (x >> 3) & 0x3ff),
        ("%r = OpBitFieldSExtract %uint %a %u3 %u10", |x| (((x << 19) as i32) >> 22) as u32),
        ("%r = OpBitFieldInsert %uint %a %u2 %u3 %u10", |x| x & !(0x3ff << 3) | 2 << 3),
        (
            "%c = OpUGreaterThan %bool %a %u10\n %r = OpSelect %uint %c %u1 %u2",
            |x| if x > 10 { 1 } else { 2 },
        ),
        ("%c = OpSGreaterThanEqual %bool %a %u10\n %r = OpSelect %uint %c %u1 %u2", |x| {
            if x as i32 >= 10 { 1 } else { 2 }
        }),
        ("%e = OpUMulExtended %pair %a %a\n %r = OpCompositeExtract %uint %e 1", |x| {
            ((x as u64 * x as u64) >> 32) as u32
        }),
        ("%e = OpSMulExtended %pair %a %a\n %r = OpCompositeExtract %uint %e 1", |x| {
            ((x as i32 as i64 * x as i32 as i64) >> 32) as u32
        }),
        ("%e = OpIAddCarry %pair %a %a\n %r = OpCompositeExtract %uint %e 1", |x| x >> 31),
        ("%e = OpISubBorrow %pair %u10 %a\n %r = OpCompositeExtract %uint %e 1", |x| (x > 10) as u32),
        ("%r = OpExtInst %uint %glsl 75 %a", |x| if x == 0 { u32::MAX } else { 31 - x.leading_zeros() }),
        ("%r = OpExtInst %uint %glsl 73 %a", |x| if x == 0 { u32::MAX } else { x.trailing_zeros() }),
        ("%r = OpExtInst %uint %glsl 5 %a", |x| (x as i32).wrapping_abs() as u32),
        ("%r = OpExtInst %uint %glsl 7 %a", |x| (x as i32).signum() as u32),
        ("%r = OpUDot %uint %a %a 0", |x| x.to_le_bytes().iter().map(|b| *b as u32 * *b as u32).sum()),
        ("%r = OpSDot %uint %a %a 0", |x| {
            x.to_le_bytes().iter().map(|b| *b as i8 as i32 * *b as i8 as i32).sum::<i32>() as u32
        }),
        ("%r = OpSDotAccSat %uint %a %a %max 0", |x| {
            let dot = x.to_le_bytes().iter().map(|b| *b as i8 as i32 * *b as i8 as i32).sum::<i32>();
            (i32::MAX - 5).saturating_add(dot) as u32
        }),
    ] {
        let globals = "%pair = OpTypeStruct %uint %uint\n%max = OpConstant %uint 0x7ffffffa";
        assert_eq!(eval(globals, code, &IN), map(f), "{code}");
    }
}

#[test]
fn vectors_and_bits() {
    let globals = "\
        %long = OpTypeInt 64 0
        %byte = OpTypeInt 8 0
        %v4byte = OpTypeVector %byte 4
        %v2bool = OpTypeVector %bool 2";
    for (code, f) in [
        (
            "%v = OpCompositeConstruct %v2uint %a %x
             %l = OpBitcast %long %v
             %m = OpIMul %long %l %l
             %w = OpBitcast %v2uint %m
             %r = OpCompositeExtract %uint %w 1",
            (|a, x| {
                let l = a as u64 | (x as u64) << 32;
                (l.wrapping_mul(l) >> 32) as u32
            }) as fn(u32, u32) -> u32,
        ),
        (
            "%b = OpBitcast %v4byte %a
             %c = OpVectorShuffle %v4byte %b %b 3 2 5 0
             %r = OpBitcast %uint %c",
            |a, _| a.swap_bytes(),
        ),
        (
            "%v = OpCompositeConstruct %v4uint %a %x %u3 %u10
             %i = OpBitwiseAnd %uint %x %u3
             %r = OpVectorExtractDynamic %uint %v %i",
            |a, x| [a, x, 3, 10][x as usize & 3],
        ),
        (
            "%v = OpCompositeConstruct %v4uint %u1 %u1 %u1 %u1
             %i = OpBitwiseAnd %uint %x %u3
             %w = OpVectorInsertDynamic %v4uint %v %a %i
             %p = OpCompositeExtract %uint %w 0
             %q = OpCompositeExtract %uint %w 2
             %r = OpISub %uint %p %q",
            |a, x| {
                let mut v = [1; 4];
                v[x as usize & 3] = a;
                v[0].wrapping_sub(v[2])
            },
        ),
        (
            "%v = OpCompositeConstruct %v2uint %a %x
             %w = OpCompositeConstruct %v2uint %u3 %u3
             %c = OpUGreaterThan %v2bool %v %w
             %d = OpAll %bool %c
             %r = OpSelect %uint %d %a %u0",
            |a, x| if a > 3 && x > 3 { a } else { 0 },
        ),
        (
            "%l = OpUConvert %long %a
             %t = OpShiftLeftLogical %long %l %u4
             %b = OpUConvert %byte %t
             %s = OpSConvert %int %b
             %r = OpBitcast %uint %s",
            |a, _| (a << 4) as u8 as i8 as i32 as u32,
        ),
    ] {
        let expected: Vec<u32> = IN.iter().enumerate().map(|(n, a)| f(*a, n as u32)).collect();
        assert_eq!(eval(globals, code, &IN), expected, "{code}");
    }
}

/// `main` with control flow of its own: the result is `%r`, in the block that is open at the end.
#[test]
fn control_flow() {
    // Sum of 0..x by a loop with a break, a continue and a phi.
    let code = "\
        OpBranch %head
        %head = OpLabel
        %i = OpPhi %uint %u0 %entry %i1 %cont
        %s = OpPhi %uint %u0 %entry %s2 %cont
        OpLoopMerge %after %cont 0
        OpBranch %test
        %test = OpLabel
        %done = OpUGreaterThanEqual %bool %i %x
        OpBranchConditional %done %after %work
        %work = OpLabel
        %odd0 = OpBitwiseAnd %uint %i %u1
        %odd = OpIEqual %bool %odd0 %u1
        OpSelectionMerge %join 0
        OpBranchConditional %odd %skip %join
        %skip = OpLabel
        OpBranch %cont
        %join = OpLabel
        %s1 = OpIAdd %uint %s %i
        OpBranch %cont
        %cont = OpLabel
        %s2 = OpPhi %uint %s %skip %s1 %join
        %i1 = OpIAdd %uint %i %u1
        OpBranch %head
        %after = OpLabel
        %r = OpIAdd %uint %s %a";
    let expected: Vec<u32> =
        (0..8u32).map(|x| (0..x).filter(|i| i % 2 == 0).sum::<u32>().wrapping_add(IN[x as usize])).collect();
    assert_eq!(eval("", code, &IN), expected);

    // A switch with a fall-through, two literals for one label, and a default.
    let code = "\
        OpSelectionMerge %after 0
        OpSwitch %x %other 1 %one 2 %two 3 %two 5 %one
        %one = OpLabel
        OpBranch %two
        %two = OpLabel
        %v = OpPhi %uint %u10 %one %u2 %entry
        OpBranch %after
        %other = OpLabel
        OpBranch %after
        %after = OpLabel
        %r = OpPhi %uint %v %two %u0 %other";
    assert_eq!(eval("", code, &IN), [0, 10, 2, 2, 0, 10, 0, 0]);

    // Conditions that are constants leave no trace.
    let code = "\
        OpSelectionMerge %after 0
        OpBranchConditional %false %never %always
        %never = OpLabel
        %bad = OpUDiv %uint %a %u0
        OpBranch %after
        %always = OpLabel
        OpBranch %after
        %after = OpLabel
        %r = OpPhi %uint %bad %never %a %always";
    let words = shader("", &body(code));
    let module = convert(&words).unwrap();
    assert!(!print(&module).contains("udiv"));
    assert_eq!(&run(&module, &IN)[..8], &IN);
}

/// Early returns from a loop in a function that is called twice, one with pointer parameters.
#[test]
fn calls() {
    let functions = "\
        %find = OpFunction %uint 0 %tfind
        %n = OpFunctionParameter %uint
        %fentry = OpLabel
        OpBranch %head
        %head = OpLabel
        %i = OpPhi %uint %u0 %fentry %i1 %cont
        OpLoopMerge %after %cont 0
        OpBranch %test
        %test = OpLabel
        %sq = OpIMul %uint %i %i
        %big = OpUGreaterThan %bool %sq %n
        OpSelectionMerge %go 0
        OpBranchConditional %big %out1 %go
        %out1 = OpLabel
        OpReturnValue %i
        %go = OpLabel
        %end = OpUGreaterThan %bool %i %u10
        OpBranchConditional %end %after %cont
        %cont = OpLabel
        %i1 = OpIAdd %uint %i %u1
        OpBranch %head
        %after = OpLabel
        OpReturnValue %u0
        OpFunctionEnd
        %add = OpFunction %void 0 %tadd
        %p = OpFunctionParameter %fuint
        %k = OpFunctionParameter %uint
        %aentry = OpLabel
        %old = OpLoad %uint %p
        %new = OpIAdd %uint %old %k
        OpStore %p %new
        OpReturn
        OpFunctionEnd";
    let globals = "%tfind = OpTypeFunction %uint %uint\n%tadd = OpTypeFunction %void %fuint %uint";
    let main = "\
        %var = OpVariable %fuint 7 %u3
        %n1 = OpFunctionCall %uint %find %a
        %c1 = OpFunctionCall %void %add %var %n1
        %n2 = OpFunctionCall %uint %find %x
        %c2 = OpFunctionCall %void %add %var %n2
        %r = OpLoad %uint %var";
    let words = shader(globals, &format!("{functions}\n{}", body(main)));
    let module = convert(&words).unwrap();
    let find = |n: u32| (0..12u32).find(|i| i * i > n).unwrap_or(0);
    let expected: Vec<u32> = (0..8).map(|x| 3 + find(IN[x as usize]) + find(x)).collect();
    assert_eq!(&run(&module, &IN)[..8], &expected);
}

#[test]
fn recursion_and_growth_are_refused() {
    let globals = "%tf = OpTypeFunction %uint %uint";
    let f = |name: &str, callee: &str, times: usize| {
        let calls: String =
            (0..times).map(|k| format!("%{name}c{k} = OpFunctionCall %uint %{callee} %{name}p\n")).collect();
        format!(
            "%{name} = OpFunction %uint 0 %tf\n%{name}p = OpFunctionParameter %uint\n%{name}l = OpLabel\n{calls}\
             OpReturnValue %{name}p\nOpFunctionEnd\n"
        )
    };
    let main = body("%r = OpFunctionCall %uint %g0 %a");
    let words = shader(globals, &format!("{}{}{main}", f("g0", "g1", 1), f("g1", "g0", 1)));
    let e = convert(&words).unwrap_err();
    assert!(e.contains("calls itself"), "{e}");
    // Forty functions, each called twelve times by the next.
    let mut functions: String = (0..40).map(|k| f(&format!("g{k}"), &format!("g{}", k + 1), 12)).collect();
    functions.push_str(&f("g40", "g40", 0));
    let e = convert(&shader(globals, &format!("{functions}{main}"))).unwrap_err();
    assert!(e.contains("grows beyond"), "{e}");
    let mut functions: String = (0..100).map(|k| f(&format!("g{k}"), &format!("g{}", k + 1), 1)).collect();
    functions.push_str(&f("g100", "g100", 0));
    let e = convert(&shader(globals, &format!("{functions}{main}"))).unwrap_err();
    assert!(e.contains("nest deeper"), "{e}");
}

#[test]
fn specialisation() {
    let globals = "\
        %n = OpSpecConstant %uint 5
        %m = OpSpecConstantOp %uint 132 %n %n
        %v = OpSpecConstantComposite %v2uint %n %m
        %e = OpSpecConstantOp %uint 81 %v 1
        %arr = OpTypeArray %uint %n
        %parr = OpTypePointer 7 %arr";
    let code = "\
        %t = OpVariable %parr 7
        %q = OpAccessChain %fuint %t %x
        OpStore %q %a
        %r = OpIAdd %uint %e %n";
    // Variables stand first in a block.
    let code = body(code)
        .replace("%t = OpVariable %parr 7\n", "")
        .replace("%entry = OpLabel", "%entry = OpLabel\n%t = OpVariable %parr 7");
    let words = shader(globals, &code);
    // The decoration must come before the types: put it in by hand, in front of the first type.
    let at = words.iter().position(|w| *w == 2 << 16 | spirv::Op::TypeVoid as u32).unwrap();
    let id = {
        let k = words.iter().position(|w| *w == 4 << 16 | spirv::Op::SpecConstant as u32).unwrap();
        words[k + 2]
    };
    let mut with = words.clone();
    with.splice(at..at, [4 << 16 | spirv::Op::Decorate as u32, id, 1, 7]);
    let module = convert(&with).unwrap();
    assert_eq!(module.vars.values().next().unwrap().size, 20);
    let options = Options { spec: vec![(7, 9)], ..Options::default() };
    let module = convert_with(&with, &options).unwrap();
    assert_eq!(module.vars.values().next().unwrap().size, 36);
    assert!(print(&module).contains("const.i32 <81>"));
}

#[test]
fn look_up_tables_become_constant_data() {
    let globals = "\
        %arr = OpTypeArray %uint %u4
        %parr = OpTypePointer 7 %arr
        %table = OpConstantComposite %arr %u10 %u3 %u2 %u1";
    let code = "\
        %i = OpBitwiseAnd %uint %x %u3
        OpStore %t %table
        %q = OpAccessChain %fuint %t %i
        %r = OpLoad %uint %q";
    let code = body(code).replace("%entry = OpLabel", "%entry = OpLabel\n%t = OpVariable %parr 7");
    let module = convert(&shader(globals, &code)).unwrap();
    assert_eq!(module.constant_data, bytes(&[10, 3, 2, 1]));
    assert!(module.vars.is_empty());
    assert_eq!(&run(&module, &IN)[..8], &[10, 3, 2, 1, 10, 3, 2, 1]);
    // Written elsewhere, it stays a variable.
    let code = code
        .replace("OpStore %t %table", "OpStore %t %table\n%w = OpAccessChain %fuint %t %u0\nOpStore %w %a");
    let module = convert(&shader(globals, &code)).unwrap();
    assert!(module.constant_data.is_empty() && module.vars.len() == 1);
    assert_eq!(&run(&module, &IN)[..8], &[0, 3, 2, 1, 100, 3, 2, 1]);
}

#[test]
fn matrices_in_buffers() {
    // A row-major and a column-major matrix of 2 columns and 3 rows in one buffer.
    let decorations = "\
        OpMemberDecorate %mb 0 35 0
        OpMemberDecorate %mb 0 4
        OpMemberDecorate %mb 0 7 16
        OpMemberDecorate %mb 1 35 48
        OpMemberDecorate %mb 1 5
        OpMemberDecorate %mb 1 7 16
        OpDecorate %mb 2
        OpDecorate %min 34 0
        OpDecorate %min 33 1\n";
    let globals = "\
        %mat = OpTypeMatrix %v3float 2
        %mb = OpTypeStruct %mat %mat
        %pmb = OpTypePointer 12 %mb
        %pmat = OpTypePointer 12 %mat
        %pf = OpTypePointer 12 %float
        %pcol = OpTypePointer 12 %v3float
        %min = OpVariable %pmb 12";
    let words = |code: &str| {
        let text = body(code)
            .replace("%pa = OpAccessChain %puint %in %u0 %x\n", "")
            .replace("%a = OpLoad %uint %pa\n", "");
        // `shader` puts globals behind its own decorations; decorations may stand anywhere for our reader.
        shader(&format!("{decorations}{globals}"), &text)
    };
    // Row-major: element (row, column) at 16 * row + 4 * column. Column-major: at 48 + 16 * column + 4 * row.
    let mut input = [0u32; 24];
    for row in 0..3 {
        for column in 0..2 {
            let v = ((10 * row + column) as f32).to_bits();
            input[4 * row + column] = v;
            input[12 + 4 * column + row] = v;
        }
    }
    for (code, expected) in [
        // Whole matrices are equal.
        (
            "%pm = OpAccessChain %pmat %min %u0
             %m = OpLoad %mat %pm
             %pn = OpAccessChain %pmat %min %u1
             %n = OpLoad %mat %pn
             %c = OpCompositeExtract %float %m 1 2
             %d = OpCompositeExtract %float %n 1 2
             %e = OpFSub %float %c %d
             %f = OpFAdd %float %e %c
             %r = OpBitcast %uint %f",
            21.0f32,
        ),
        // Single elements and columns.
        (
            "%pe = OpAccessChain %pf %min %u0 %u1 %u2
             %e = OpLoad %float %pe
             %r = OpBitcast %uint %e",
            21.0,
        ),
        (
            "%y = OpBitwiseAnd %uint %x %u0
             %pe = OpAccessChain %pcol %min %u0 %y
             %e = OpLoad %v3float %pe
             %g = OpCompositeExtract %float %e 2
             %r = OpBitcast %uint %g",
            20.0,
        ),
        (
            "%v = OpCompositeConstruct %v2float %f1 %f2
             %pm = OpAccessChain %pmat %min %u0
             %m = OpLoad %mat %pm
             %w = OpMatrixTimesVector %v3float %m %v
             %g = OpCompositeExtract %float %w 1
             %r = OpBitcast %uint %g",
            10.0 + 2.0 * 11.0,
        ),
    ] {
        let module = convert(&words(code)).unwrap_or_else(|e| panic!("{code}: {e}"));
        let out = run(&module, &input);
        assert_eq!(f32::from_bits(out[0]), expected, "{code}");
    }
}

#[test]
fn large_initial_values() {
    // 600 words of zeros, and 600 of a constant, both also written to.
    let globals = "\
        %n = OpConstant %uint 600
        %arr = OpTypeArray %uint %n
        %parr = OpTypePointer 7 %arr
        %zeros = OpConstantNull %arr
        %idx = OpConstant %uint 599";
    let code = "\
        %q = OpAccessChain %fuint %t %x
        OpStore %q %a
        %q2 = OpAccessChain %fuint %t %idx
        %z = OpLoad %uint %q2
        %y = OpLoad %uint %q
        %r = OpIAdd %uint %y %z";
    let code = body(code).replace("%entry = OpLabel", "%entry = OpLabel\n%t = OpVariable %parr 7 %zeros");
    let module = convert(&shader(globals, &code)).unwrap();
    assert!(module.func.layout.len() > 1, "a loop");
    assert_eq!(&run(&module, &IN)[..8], &IN);
}

/// A function with a large local array, called often: one array.
#[test]
fn large_variables_are_shared_between_calls() {
    let globals = "\
        %n = OpConstant %uint 300
        %arr = OpTypeArray %uint %n
        %parr = OpTypePointer 7 %arr
        %tf = OpTypeFunction %uint %uint";
    let f = "\
        %f = OpFunction %uint 0 %tf
        %p = OpFunctionParameter %uint
        %fl = OpLabel
        %t = OpVariable %parr 7
        %q = OpAccessChain %fuint %t %p
        %p1 = OpIAdd %uint %p %u1
        OpStore %q %p1
        %v = OpLoad %uint %q
        OpReturnValue %v
        OpFunctionEnd\n";
    let mut code = String::from("%r0 = OpCopyObject %uint %x\n");
    for k in 0..40 {
        code.push_str(&format!("%r{} = OpFunctionCall %uint %f %r{k}\n", k + 1));
    }
    code.push_str("%r = OpCopyObject %uint %r40\n");
    let module = convert(&shader(globals, &format!("{f}{}", body(&code)))).unwrap();
    assert_eq!(module.vars.len(), 1);
    assert_eq!(&run(&module, &IN)[..8], &[40, 41, 42, 43, 44, 45, 46, 47]);
}

/// Types that are nothing, nested so that walking them would never end; deep calls; large arrays as values.
#[test]
fn bombs() {
    let mut globals = String::from("%e0 = OpTypeStruct\n");
    for k in 0..60 {
        globals.push_str(&format!("%e{} = OpTypeStruct %e{k} %e{k}\n", k + 1));
    }
    globals.push_str("%big = OpConstant %uint 0xffffffff\n%ea = OpTypeArray %e60 %big\n");
    globals.push_str(
        "%es = OpTypeStruct %uint %ea %e60\n%pes = OpTypePointer 7 %es\n%nes = OpConstantNull %es\n",
    );
    let code = body("%v = OpLoad %es %t\nOpStore %t %v\n%r = OpCompositeExtract %uint %v 0")
        .replace("%entry = OpLabel", "%entry = OpLabel\n%t = OpVariable %pes 7 %nes");
    assert!(convert(&shader(&globals, &code)).unwrap_err().contains("cannot be loaded"));
    let code = body("%r = OpCompositeExtract %uint %nes 0");
    assert_eq!(eval(&globals, "%r = OpCompositeExtract %uint %nes 0", &IN), [0; 8], "{code}");
    let globals = "%n = OpConstant %uint 100000\n%arr = OpTypeArray %uint %n\n%parr = OpTypePointer 7 %arr\n%na = OpConstantNull %arr";
    let code = body("%v = OpLoad %arr %t\n%r = OpCompositeExtract %uint %v 0")
        .replace("%entry = OpLabel", "%entry = OpLabel\n%t = OpVariable %parr 7 %na");
    assert!(convert(&shader(globals, &code)).unwrap_err().contains("too large"));
    // Calls as deep as they may be.
    let globals = "%tf = OpTypeFunction %uint %uint";
    let mut functions = String::new();
    for k in 0..62 {
        let call = match k {
            61 => format!("%g{k}r = OpIAdd %uint %g{k}p %u1\n"),
            _ => format!("%g{k}r = OpFunctionCall %uint %g{} %g{k}p\n", k + 1),
        };
        functions.push_str(&format!(
            "%g{k} = OpFunction %uint 0 %tf\n%g{k}p = OpFunctionParameter %uint\n%g{k}l = OpLabel\n{call}\
             OpReturnValue %g{k}r\nOpFunctionEnd\n"
        ));
    }
    let main = body("%r = OpFunctionCall %uint %g0 %a");
    let module = convert(&shader(globals, &format!("{functions}{main}"))).unwrap();
    assert_eq!(run(&module, &IN)[3], 4);
}

#[test]
fn shared_memory_starts_as_zeros_where_asked() {
    let globals = "\
        %n = OpConstant %uint 20
        %arr = OpTypeArray %uint %n
        %warr = OpTypePointer 4 %arr
        %wuint = OpTypePointer 4 %uint
        %zeros = OpConstantNull %arr
        %sh = OpVariable %warr 4 %zeros";
    let code = "\
        %y = OpIAdd %uint %x %u10
        %q = OpAccessChain %wuint %sh %y
        %z = OpLoad %uint %q
        %r = OpIAdd %uint %z %a";
    assert_eq!(eval(globals, code, &IN), IN);
}

#[test]
fn clear_messages() {
    let main = body("%r = OpCopyObject %uint %a");
    let convert_text = |globals: &str, main: &str| convert(&shader(globals, main)).unwrap_err();
    let e =
        convert_text("", &main.replace("%main = OpFunction %void 0 %fn", "%other = OpFunction %void 0 %fn"));
    assert!(e.contains("names no function"), "{e}");
    let e = convert_text("", &main.replace("%r = OpCopyObject %uint %a", "%r = OpFAdd %uint %a %a"));
    assert!(e.contains("wrong type"), "{e}");
    let e = convert_text("", &main.replace("%r = OpCopyObject %uint %a", "%r = OpIAdd %uint %a %nothing"));
    assert!(e.contains("is not a value"), "{e}");
    let e =
        convert_text("", &main.replace("OpStore %pr %r", "OpStore %pr %late\n%late = OpCopyObject %uint %a"));
    assert!(e.contains("before it is defined"), "{e}");
    // A stage without what the shader reads, kernels, no entry point, and an unknown one.
    let mut words = shader("", &main);
    let k = words.iter().position(|w| *w as u16 == spirv::Op::EntryPoint as u16).unwrap();
    words[k + 1] = 3;
    let e = convert(&words).unwrap_err();
    assert!(e.contains("GlobalInvocationId is not supported in this stage"), "{e}");
    words[k + 1] = 6;
    assert!(convert(&words).unwrap_err().contains("OpenCL kernels are not supported yet"));
    words[k + 1] = 5;
    let options = Options { entry: Some("nobody".to_owned()), ..Options::default() };
    let e = convert_with(&words, &options).unwrap_err();
    assert!(e.contains("no entry point `nobody`") && e.contains("`main`"), "{e}");
    let len = (words[k] >> 16) as usize;
    words.drain(k..k + len);
    assert!(convert(&words).unwrap_err().contains("no entry point"));
    // The other byte order is fine.
    let words = shader("", &main);
    let swapped: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
    let modules = kempe_front::compile("x.spv", &swapped, kempe_front::Language::Spirv, &Options::default());
    assert_eq!(print(&modules.unwrap()[0]), print(&convert(&words).unwrap()));
}

/// A value that is defined in one branch and used behind it: nothing that is not dominated gets through.
#[test]
fn dominance_is_checked() {
    let code = "\
        %c = OpIEqual %bool %x %u0
        OpSelectionMerge %after 0
        OpBranchConditional %c %then %after
        %then = OpLabel
        %v = OpIAdd %uint %a %u1
        OpBranch %after
        %after = OpLabel
        %r = OpIAdd %uint %v %u1";
    let e = convert(&shader("", &body(code))).unwrap_err();
    assert!(e.contains("not valid SPIR-V"), "{e}");
}

#[test]
fn lines_and_names() {
    let main = body("OpLine %file 42 7\n%r = OpIAdd %uint %a %u1\nOpNoLine");
    let words = shader("", &main);
    // String and name go in front of the types.
    let at = words.iter().position(|w| *w == 2 << 16 | spirv::Op::TypeVoid as u32).unwrap();
    let k = words.iter().position(|w| *w == 4 << 16 | spirv::Op::Line as u32).unwrap();
    let file = words[k + 1];
    let sum = words[k + 4 + 2];
    let mut with = words.clone();
    let text = |s: &str| {
        let mut b = s.as_bytes().to_vec();
        b.resize((b.len() + 1).next_multiple_of(4), 0);
        b.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect::<Vec<_>>()
    };
    let mut extra = vec![4 << 16 | spirv::Op::String as u32, file];
    extra.extend(text("a.comp"));
    extra.extend([4 << 16 | spirv::Op::Name as u32, sum]);
    extra.extend(text("total"));
    with.splice(at..at, extra);
    let module = convert(&with).unwrap();
    let text = print(&module);
    assert!(text.contains("\"total\" = iadd.i32"), "{text}");
    assert_eq!(module.files, ["a.comp"]);
    assert!(module.locs.iter().any(|l| (l.line, l.column) == (42, 7)));
    // A message about that instruction is at its line.
    let mut bad = with.clone();
    let k = bad.iter().position(|w| *w == 4 << 16 | spirv::Op::Line as u32).unwrap();
    bad[k + 4] = 5 << 16 | spirv::Op::FAdd as u32;
    let e = convert(&bad).unwrap_err();
    assert!(e.starts_with("a.comp:42:7: error:"), "{e}");
}

/// A literal that is the number of another stage's variable does not bring that variable in.
#[test]
fn literals_are_no_variables() {
    let text = r#"
        OpCapability 1
        OpMemoryModel 0 1
        OpEntryPoint 4 %main "main" %o
        OpExecutionMode %main 7
        OpDecorate %index 11 42
        OpDecorate %o 30 0
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %int = OpTypeInt 32 1
        %float = OpTypeFloat 32
        %vec4 = OpTypeVector %float 4
        %in = OpTypePointer 1 %int
        %out = OpTypePointer 3 %float
        %index = OpVariable %in 1
        %o = OpVariable %out 3
        %half = OpConstant %float 0.5f
        %all = OpConstantComposite %vec4 %half %half %half %half
        %main = OpFunction %void 0 %fn
        %start = OpLabel
        %w = OpCompositeExtract %float %all 3
        OpStore %o %w
        OpReturn
        OpFunctionEnd
    "#;
    let module = convert(&assemble(text)).unwrap_or_else(|e| panic!("{e}"));
    let printed = kempe_ir::text::print(&module);
    assert!(printed.contains("output.f32 <location 0 component 0>"), "{printed}");
    // Here it is asked for, but it is not of this stage's interface.
    let asked = text.replace("OpReturn\n", "%i = OpLoad %int %index\n        OpReturn\n");
    let e = convert(&assemble(&asked)).unwrap_err();
    assert!(e.contains("is not in the interface of the entry point"), "{e}");
}
