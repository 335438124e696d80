//! Inputs that the targets start from. All of them are made here: by the assembler of the front end's tests, and from
//! random programs that go down the road.

use super::spirv_text::{body, bytes, shader};
use kempe_ir::generate::{Shape, generate};
use kempe_mir::Artifact;
use kempe_v3d::asm;
use kempe_v3d::compile::{Options, compile};
use kempe_v3d::instr::Version;

/// The seeds of a target.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    match target {
        "spirv" => spirv().iter().map(|w| bytes(w)).collect(),
        "decode" => words(),
        "assemble" => texts(),
        "agx" => agx(),
        "raw" => raw_programs(),
        "artifact" => artifacts().map(|(_, a)| kempe::artifact::write(&a).into_bytes()).collect(),
        _ => Vec::new(),
    }
}

/// Small programs with much in them.
fn artifacts() -> impl Iterator<Item = (Version, Artifact)> {
    (0..12).filter_map(|seed| {
        let shape =
            Shape { operations: 10, live: 4, depth: 2, early_return: false, ..Shape::from_seed(seed) };
        let mut m = generate(seed, &shape);
        let version = Version::ALL[(seed & 1) as usize];
        kempe_opt::optimise(&mut m, kempe_opt::Level::O2);
        Some((version, compile(m, version, &Options::default(), &mut ()).ok()?))
    })
}

fn words() -> Vec<Vec<u8>> {
    let mut list = Vec::new();
    for (version, a) in artifacts() {
        for part in a.code.chunks(8 * 24).take(4) {
            let mut bytes = vec![(version == Version::ALL[1]) as u8];
            bytes.extend(part);
            list.push(bytes);
        }
    }
    list
}

fn texts() -> Vec<Vec<u8>> {
    let mut list = Vec::new();
    for (version, a) in artifacts() {
        for part in kempe_mir::words_of_code(&a.code).chunks(12).take(4) {
            let lines: Vec<String> = part.iter().map(|&w| asm::disassemble(version, w, false)).collect();
            list.push(lines.join("\n").into_bytes());
        }
    }
    list.push(b"start: nop; nop # a comment\nb.anyap start\nnop\nnop\nnop".to_vec());
    list
}

/// Programs of AGX, as bytes and as text.
fn agx() -> Vec<Vec<u8>> {
    let end = "stop\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\ntrap\n";
    let texts = [
        "get_sr r4, sr80\nand r4, r4, 15\ndevice_load 0, i32, x, r5, u0_u1, r4, unsigned\nwait 0\nfmadd32 r5, r5, r4, 1.0\n\
         device_store 0, i32, x, r5, u0_u1, r4, unsigned, 0\n",
        "mov_imm r0l, 0\nmov_imm r5, 0, 0b0\npush_exec r0l, 1\nagain:\niadd r5, r5, 1\nwhile_icmp r0l, ult, r5, 9, 1\n\
         jmp_exec_any again\npop_exec r0l, 1\n",
        "get_sr r4l, sr51\nmov_imm r5, 7, 0b0\nand r4l, r4l, 7\nthreadgroup_store i32, x, r5, 0, r4l\nthreadgroup_barrier\n\
         threadgroup_atomic add, r6, 0, 3, r5, 0, 2, 128, 0\n",
        "stack_adjust 0, 1, 2, 0, 0, 16\nmov_imm r6, 8, 0b0\nstack_store i32, 1, 0, x, 4, r6, 8, 0\nwait 0\n\
         stack_load r5, i32, 1, 0, x, 4, 8, 0\nwait 0\nsimd_iadd r6, r5\nsimd_shuffle_xor r7, r6, 1\nicmp_ballot r8, ult, r5, 5\n",
        "texture_sample 0, 0b1100, 0b0, none, xyzw, 0b00, r0_r1_r2_r3, u2_u3, r9, ss1, tex_2d, r4_r5, lod_min, r6l\n\
         iter r10_r11, cf3, center, 0b0, 0, 0, 0, 0, 0\nzs_emit 255, r4l_r4h, 0\nimage_write r0_r1_r2_r3, r4_r5, 0, None, ts2, tex_2d, rte, 1, 0, 9, 0\n",
    ];
    let mut list = Vec::new();
    for text in texts {
        let text = format!("{text}{end}");
        list.push([&[1], text.as_bytes()].concat());
        let code = kempe_agx::asm::assemble(&text).unwrap_or_default();
        for head in [0, 2] {
            list.push([&[head], &code[..]].concat());
        }
    }
    list
}

fn raw_programs() -> Vec<Vec<u8>> {
    artifacts()
        .map(|(version, a)| {
            let code = a.code.clone();
            let length = code.len();
            let uniforms: Vec<u8> = a.uniforms.iter().flat_map(|_| 0x0006_0000u32.to_le_bytes()).collect();
            let words = uniforms.len();
            let json = format!(
                r#"{{"target":"{}","code":{{"address":262144,"offset":0,"length":{length}}},"code_address":262144,
"uniforms_address":327680,"memory":[{{"name":"uniforms","address":327680,"offset":{length},"length":{words}}}],
"dispatch":{{"batches":1,"workgroup_size":[16,1,1],"workgroup_count":[1,1,1],"wgs_per_supergroup":1,
"batches_per_supergroup":1,"four_threads":true}},"strict_switch":true,"uniform_branch_lane":0,
"expected":[{{"name":"out","address":393216,"offset":0,"length":16,"dtype":"float32","compare":"rtol","rtol":0.5,"atol":1.0,
"mask_offset":0,"changed":true}}]}}"#,
                version.name()
            );
            let mut all = json.into_bytes();
            all.push(0);
            all.extend(code);
            all.extend(uniforms);
            all
        })
        .collect()
}

/// Modules of our own: control flow, memory, calls, vectors and matrices, atomics, wide and narrow types.
fn spirv() -> Vec<Vec<u32>> {
    let loops = "
        OpBranch %head
        %head = OpLabel
        %i = OpPhi %uint %u0 %entry %i1 %cont
        %s = OpPhi %uint %u0 %entry %s1 %cont
        OpLoopMerge %after %cont 0
        OpBranch %test
        %test = OpLabel
        %done = OpUGreaterThanEqual %bool %i %x
        OpBranchConditional %done %after %work
        %work = OpLabel
        OpSelectionMerge %join 0
        OpSwitch %i %other 1 %one 2 %two
        %one = OpLabel
        OpBranch %two
        %two = OpLabel
        OpBranch %join
        %other = OpLabel
        OpBranch %cont
        %join = OpLabel
        OpBranch %cont
        %cont = OpLabel
        %k = OpPhi %uint %u1 %join %u2 %other
        %s1 = OpIAdd %uint %s %k
        %i1 = OpIAdd %uint %i %u1
        OpBranch %head
        %after = OpLabel
        %r = OpIAdd %uint %s %a";
    let memory_globals = "
        %arr = OpTypeArray %v4float %u4
        %st = OpTypeStruct %uint %arr %v3uint
        %fst = OpTypePointer 7 %st
        %ff = OpTypePointer 7 %float
        %wst = OpTypePointer 4 %st
        %wuint = OpTypePointer 4 %uint
        %zero = OpConstantNull %st
        %sh = OpVariable %wst 4
        %spec = OpSpecConstant %uint 7
        %sum = OpSpecConstantOp %uint 128 %spec %u3
        %fn1 = OpTypeFunction %float %fst %uint
        %scope = OpConstant %uint 2
        %sem = OpConstant %uint 264";
    let called = "
        %pick = OpFunction %float 0 %fn1
        %pp = OpFunctionParameter %fst
        %pi = OpFunctionParameter %uint
        %pl = OpLabel
        %pc = OpUGreaterThan %bool %pi %u2
        OpSelectionMerge %pm 0
        OpBranchConditional %pc %early %pm
        %early = OpLabel
        OpReturnValue %f1
        %pm = OpLabel
        %pe = OpAccessChain %ff %pp %u1 %pi %u2
        %pv = OpLoad %float %pe
        OpReturnValue %pv
        OpFunctionEnd";
    let memory = body(
        "%v = OpLoad %st %t
        %v1 = OpCompositeInsert %st %a %v 0
        OpStore %t %v1
        %g = OpFunctionCall %float %pick %t %u1
        %h = OpExtInst %float %glsl 21 %g
        %wp = OpAccessChain %wuint %sh %u0
        %old = OpAtomicIAdd %uint %wp %u1 %u0 %a
        OpControlBarrier %scope %scope %sem
        %w = OpLoad %uint %wp
        %hi = OpBitcast %uint %h
        %q = OpIAdd %uint %hi %sum
        %r = OpIAdd %uint %w %q",
    )
    .replace("%entry = OpLabel", "%entry = OpLabel\n%t = OpVariable %fst 7 %zero");
    let vectors = "
        %xf = OpConvertUToF %float %x
        %v = OpCompositeConstruct %v4float %xf %f1 %f2 %xf
        %w = OpVectorShuffle %v2float %v %v 3 4
        %m = OpCompositeConstruct %mat %w %w
        %mv = OpMatrixTimesVector %v2float %m %w
        %t = OpTranspose %mat %m
        %mm = OpMatrixTimesMatrix %mat %t %m
        %vm = OpVectorTimesMatrix %v2float %mv %mm
        %d = OpDot %float %vm %w
        %n = OpExtInst %v2float %glsl 69 %vm
        %l = OpExtInst %float %glsl 66 %n
        %sum = OpFAdd %float %d %l
        %e = OpVectorExtractDynamic %float %v %x
        %f = OpFMul %float %sum %e
        %isnan = OpIsNan %bool %f
        %sel = OpSelect %float %isnan %f1 %f
        %r = OpConvertFToU %uint %sel";
    let wide = "
        %xl = OpUConvert %ulong %x
        %yl = OpIMul %ulong %xl %xl
        %c = OpShiftRightLogical %ulong %yl %u3
        %n = OpUConvert %ushort %c
        %b = OpUConvert %uchar %n
        %bx = OpUConvert %uint %b
        %pair = OpUMulExtended %carry %x %a
        %hi = OpCompositeExtract %uint %pair 1
        %bf = OpBitFieldInsert %uint %hi %bx %u3 %u4
        %rev = OpBitReverse %uint %bf
        %cnt = OpBitCount %uint %rev
        %div = OpUDiv %uint %cnt %u3
        %r = OpUMod %uint %div %u4";
    vec![
        shader("", &body("%r = OpIMul %uint %a %u3")),
        shader("", &body(loops)),
        shader(memory_globals, &format!("{called}\n{memory}")),
        shader("%mat = OpTypeMatrix %v2float 2", &body(vectors)),
        shader(
            "%ulong = OpTypeInt 64 0\n%ushort = OpTypeInt 16 0\n%uchar = OpTypeInt 8 0\n%carry = OpTypeStruct %uint %uint",
            &body(wide),
        ),
    ]
}
