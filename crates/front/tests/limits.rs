//! What the front end refuses: each with a message that says what and why, a help that says what to do, and a line in
//! `docs/limits.md`.

mod common;

use common::*;
use kempe_front::{Language, Options, compile};

/// Refuses a module; gives message and help.
fn refused(words: &[u32]) -> (String, String) {
    let errors = compile("test.spv", &bytes(words), Language::Spirv, &Options::default()).unwrap_err();
    let first = &errors.0[0];
    (first.message.clone(), first.help.clone())
}

/// What is in a module, what the message and the help must say, and a part of the line in the list of limits.
struct Limit {
    globals: &'static str,
    code: &'static str,
    message: &'static str,
    help: &'static str,
    line: &'static str,
}

const LIMITS: &[Limit] = &[
    Limit {
        globals: "%rq = OpTypeRayQueryKHR\n%prq = OpTypePointer 6 %rq\n%q = OpVariable %prq 6",
        code: "OpRayQueryTerminateKHR %q\n%r = OpCopyObject %uint %a",
        message: "ray queries are not supported: the hardware does not trace rays",
        help: "compute intersections in the shader",
        line: "ray queries",
    },
    Limit {
        globals: "%ptr = OpTypeUntypedPointerKHR 12",
        code: "%p = OpUntypedAccessChainKHR %ptr %block %in %u0 %x\n%r = OpLoad %uint %p",
        message: "untyped pointers are not supported yet: OpUntypedAccessChainKHR",
        help: "compile the source without SPV_KHR_untyped_pointers",
        line: "untyped pointers",
    },
    Limit {
        globals: "",
        code: "%c = OpULessThan %bool %x %u4\n%n = OpGroupNonUniformAll %bool %u2 %c\n%r = OpSelect %uint %n %u1 %u0",
        message: "operations over a whole work-group are not supported: lanes reach each other within a subgroup",
        help: "use shared memory and a barrier, or the scope Subgroup",
        line: "group operations of other scopes than the subgroup",
    },
    Limit {
        globals: "%half = OpTypeInt 24 0",
        code: "%r = OpCopyObject %uint %a",
        message: "24-bit integers are not supported: 8, 16, 32 and 64 bits are",
        help: "",
        line: "integers of 8, 16, 32 and 64 bits",
    },
    Limit {
        globals: "",
        code: "%f = OpConvertUToF %float %x\n%d = OpDPdx %float %f\n%r = OpBitcast %uint %d",
        message: "derivatives in compute shaders need a declared arrangement of the invocations",
        help: "declare `derivative_group_quadsNV` or `derivative_group_linearNV`",
        line: "Derivatives in compute need a declared arrangement",
    },
    Limit {
        globals: "%img = OpTypeImage %float 1 0 0 1 2 1\n%pimg = OpTypePointer 0 %img\n%i = OpVariable %pimg 0\n%v2 = OpTypeVector %int 2\n%v4 = OpTypeVector %float 4",
        code: "%h = OpLoad %img %i\n%z = OpBitcast %int %x\n%at = OpCompositeConstruct %v2 %z %z\n%t = OpImageRead %v4 %h %at 64 %u0\n%f = OpCompositeExtract %float %t 0\n%r = OpBitcast %uint %f",
        message: "multisampled storage images are not supported: the hardware writes single texels",
        help: "use a buffer, or an image for each sample",
        line: "multisampled storage images",
    },
    Limit {
        globals: "%img = OpTypeImage %float 1 0 0 0 1 0\n%pimg = OpTypePointer 0 %img\n%i = OpVariable %pimg 0\n%v2 = OpTypeVector %int 2\n%v4 = OpTypeVector %float 4\n%both = OpTypeStruct %int %v4",
        code: "%h = OpLoad %img %i\n%z = OpBitcast %int %x\n%at = OpCompositeConstruct %v2 %z %z\n%t = OpImageSparseFetch %both %h %at\n%f = OpCompositeExtract %float %t 1 0\n%r = OpBitcast %uint %f",
        message: "sparse residency is not supported: the hardware does not say what is resident (OpImageSparseFetch)",
        help: "use the instruction without residency",
        line: "sparse residency",
    },
    Limit {
        globals: "%img = OpTypeImage %float 1 0 0 0 1 0\n%simg = OpTypeSampledImage %img\n%pimg = OpTypePointer 0 %simg\n%i = OpVariable %pimg 0\n%v2 = OpTypeVector %float 2\n%v4 = OpTypeVector %float 4",
        code: "%h = OpLoad %simg %i\n%at = OpCompositeConstruct %v2 %f1 %f1\n%t = OpImageSampleImplicitLod %v4 %h %at 128 %f1\n%f = OpCompositeExtract %float %t 0\n%r = OpBitcast %uint %f",
        message: "a least level of detail at an image access is not supported: the texture unit takes none",
        help: "set the least level of the sampler",
        line: "least levels of detail",
    },
];

#[test]
fn every_refusal_says_what_why_and_what_to_do() {
    let list = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md")).unwrap();
    // Lines of the list are broken anywhere.
    let list = list.split_whitespace().collect::<Vec<_>>().join(" ");
    for limit in LIMITS {
        let (message, help) = refused(&shader(limit.globals, &body(limit.code)));
        assert!(message.starts_with(limit.message), "{message}\nfor {}", limit.message);
        assert_eq!(help, limit.help, "{message}");
        assert!(list.contains(limit.line), "docs/limits.md says nothing of `{}`", limit.line);
    }
}
